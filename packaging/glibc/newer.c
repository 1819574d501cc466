// What our objects and the C++ library in them want of glibc after 2.28, made of what 2.28 has. stubs.py compiles each part for
// itself, and the linker takes those that are missing. Structures and versions of calls: the x86-64, ARM and RISC-V ABIs.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef WANT_START
// From glibc 2.34 on the library runs a program's constructors; before, the program brought a function for that. Newer ones still
// call it if there is one.
typedef void Constructor(int, char**, char**);
typedef int Main(int, char**, char**);
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));
int libc_start(Main*, int, char**, Constructor*, void (*)(void), void (*)(void), void*);
__asm__(".symver libc_start, __libc_start_main@" START_VERSION);

static void construct(int argc, char** argv, char** environment) {
    for (Constructor** each = __init_array_start; each != __init_array_end; ++each) (*each)(argc, argv, environment);
}

int __libc_start_main(Main* program, int argc, char** argv, Constructor* init, void (*fini)(void),
                      void (*loader_fini)(void), void* end) {
    return libc_start(program, argc, argv, init ? init : construct, fini, loader_fini, end);
}
#endif

#ifdef WANT_SINGLE_THREADED
char __libc_single_threaded = 0;  // there may be several, so counts are atomic
#endif

// Calls that were inline functions before 2.33.
#if defined __aarch64__ || defined __riscv
enum { kStatVersion = 0 };
#elif defined __arm__
enum { kStatVersion = 3 };
#else
enum { kStatVersion = 1 };
#endif
int __xstat(int, const char*, struct stat*);
int __lxstat(int, const char*, struct stat*);
int __fxstat(int, int, struct stat*);
int __fxstatat(int, int, const char*, struct stat*, int);
int __xstat64(int, const char*, struct stat64*);
int __lxstat64(int, const char*, struct stat64*);
int __fxstat64(int, int, struct stat64*);
int __fxstatat64(int, int, const char*, struct stat64*, int);
#ifdef WANT_STAT
int stat(const char* path, struct stat* out) { return __xstat(kStatVersion, path, out); }
int lstat(const char* path, struct stat* out) { return __lxstat(kStatVersion, path, out); }
int fstat(int file, struct stat* out) { return __fxstat(kStatVersion, file, out); }
int fstatat(int folder, const char* path, struct stat* out, int flags) {
    return __fxstatat(kStatVersion, folder, path, out, flags);
}
#endif
#ifdef WANT_STAT64
int stat64(const char* path, struct stat64* out) { return __xstat64(kStatVersion, path, out); }
int lstat64(const char* path, struct stat64* out) { return __lxstat64(kStatVersion, path, out); }
int fstat64(int file, struct stat64* out) { return __fxstat64(kStatVersion, file, out); }
int fstatat64(int folder, const char* path, struct stat64* out, int flags) {
    return __fxstatat64(kStatVersion, folder, path, out, flags);
}
#endif

#ifdef WANT_CLOCK_WAITS
// The same moment by the clock that 2.28 waits by. Who sets that clock meanwhile moves the end of the wait.
static struct timespec real_time(clockid_t clock, const struct timespec* until) {
    struct timespec now, real;
    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &real);
    long long seconds = until->tv_sec - now.tv_sec, nanoseconds = until->tv_nsec - now.tv_nsec + real.tv_nsec;
    for (; nanoseconds < 0; nanoseconds += 1000000000) --seconds;
    for (; nanoseconds >= 1000000000; nanoseconds -= 1000000000) ++seconds;
    real.tv_sec += seconds, real.tv_nsec = nanoseconds;
    return real;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
    const struct timespec real = real_time(clock, until);
    return pthread_cond_timedwait(condition, mutex, &real);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
    const struct timespec real = real_time(clock, until);
    return pthread_mutex_timedlock(mutex, &real);
}
#endif

#ifdef WANT_ARC4RANDOM
unsigned arc4random(void) {
    unsigned value;
    if (getentropy(&value, sizeof value) != 0) abort();  // it cannot fail, and a kernel since 3.17 does not
    return value;
}
#endif

#ifdef WANT_ISOC23
// Headers since 2.38 call these, which know C23's 0b101, too.
#define READS(type, name)                                     \
    type old_##name(const char*, char**, int) __asm__(#name); \
    type __isoc23_##name(const char* text, char** end, int base) { return old_##name(text, end, base); }
READS(long, strtol)
READS(long long, strtoll)
READS(unsigned long, strtoul)
READS(unsigned long long, strtoull)
#endif
