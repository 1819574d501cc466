/* A library to preload: the Nth call of one function of the C library fails, as FOVEA_FAULT=NAME:N says, and so does
 * every later one where it is NAME:N+. Where the call is reached a byte goes to file descriptor FOVEA_FAULT_FD.
 * Of aligned memory FOVEA_ALIGNED_BYTES can be had in all, where that is set.
 * NAME:Nk, NAME:Ni and NAME:Nt send the process SIGKILL, SIGINT or SIGTERM there instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char wanted[24];
static char how;
static long at;
static int report_to = -1;
static atomic_long n_calls;
static atomic_long aligned_left = LONG_MAX;

__attribute__((constructor)) static void read_environment(void) {
    const char* fault = getenv("FOVEA_FAULT");
    const char* fd = getenv("FOVEA_FAULT_FD");
    const char* aligned = getenv("FOVEA_ALIGNED_BYTES");
    if (aligned) aligned_left = strtol(aligned, NULL, 10);
    const char* colon = fault ? strchr(fault, ':') : NULL;
    if (!colon || (size_t)(colon - fault) >= sizeof wanted) return;
    memcpy(wanted, fault, (size_t)(colon - fault));
    char* end;
    at = strtol(colon + 1, &end, 10);
    how = *end;
    if (fd) report_to = (int)strtol(fd, NULL, 10);
}

/* Whether this call is the one; takes no memory and no lock, for it is asked in the middle of malloc. */
static int fails(const char* name) {
    if (!at || strcmp(name, wanted) != 0) return 0;
    const long n = atomic_fetch_add(&n_calls, 1) + 1;
    if (n == at) {
        syscall(SYS_write, report_to, "!", 1);
        if (how == 'k' || how == 'i' || how == 't') {
            kill(getpid(), how == 'k' ? SIGKILL : how == 'i' ? SIGINT : SIGTERM);
            return 0;
        }
    }
    return n == at || (how == '+' && n > at);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define FAILS(name, error, result) \
    if (fails(name)) { \
        errno = error; \
        return result; \
    }

int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    FAILS("open", EMFILE, -1)
    REAL(open);
    return real(path, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
FILE* fopen(const char* path, const char* mode) {
    FAILS("open", EMFILE, NULL)
    REAL(fopen);
    return real(path, mode);
}
FILE* fopen64(const char* path, const char* mode) __attribute__((alias("fopen")));
ssize_t read(int file, void* bytes, size_t n) {
    FAILS("read", EIO, -1)
    REAL(read);
    return real(file, bytes, n);
}
ssize_t write(int file, const void* bytes, size_t n) {
    FAILS("write", ENOSPC, -1)
    REAL(write);
    return real(file, bytes, n);
}
ssize_t writev(int file, const struct iovec* parts, int n) {
    FAILS("write", ENOSPC, -1)
    REAL(writev);
    return real(file, parts, n);
}
ssize_t pwrite(int file, const void* bytes, size_t n, off_t offset) {
    FAILS("write", ENOSPC, -1)
    REAL(pwrite);
    return real(file, bytes, n, offset);
}
ssize_t pwrite64(int file, const void* bytes, size_t n, off_t offset) __attribute__((alias("pwrite")));
int fsync(int file) {
    FAILS("fsync", EIO, -1)
    REAL(fsync);
    return real(file);
}
int rename(const char* from, const char* to) {
    FAILS("rename", EACCES, -1)
    REAL(rename);
    return real(from, to);
}
void* mmap(void* place, size_t n, int protection, int flags, int file, off_t offset) {
    FAILS("mmap", ENOMEM, MAP_FAILED)
    return (void*)syscall(SYS_mmap, place, n, protection, flags, file, offset);
}
void* mmap64(void* place, size_t n, int protection, int flags, int file, off_t offset) __attribute__((alias("mmap")));
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
    if (fails("pthread_create")) return EAGAIN;
    REAL(pthread_create);
    return real(thread, attributes, run, argument);
}

/* dlsym allocates, so glibc's own names are used for the allocator. */
extern void* __libc_malloc(size_t n);
extern void* __libc_calloc(size_t n, size_t size);
extern void* __libc_realloc(void* old, size_t n);
extern void* __libc_memalign(size_t alignment, size_t n);
void* malloc(size_t n) {
    FAILS("malloc", ENOMEM, NULL)
    return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
    FAILS("malloc", ENOMEM, NULL)
    return __libc_calloc(n, size);
}
void* realloc(void* old, size_t n) {
    FAILS("malloc", ENOMEM, NULL)
    return __libc_realloc(old, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
    FAILS("malloc", ENOMEM, NULL)
    if (atomic_fetch_sub(&aligned_left, (long)n) < (long)n) return NULL;
    return __libc_memalign(alignment, n);
}
int posix_memalign(void** place, size_t alignment, size_t n) {
    if (fails("malloc")) return ENOMEM;
    *place = __libc_memalign(alignment, n);
    return *place ? 0 : ENOMEM;
}
