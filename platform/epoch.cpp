// Sleeping by futex on Linux, by one mutex and one condition on other systems with POSIX threads (MinGW has them, too), and not
// at all without a system. std::atomic::wait would do all this, and make every C program link the C++ library.
#include "platform/epoch.h"

#if defined(__unix__) || defined(__APPLE__) || (defined(_WIN32) && defined(FOVEA_THREADS))
#define FOVEA_POSIX 1
#include <sched.h>
#include <time.h>
#endif
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(FOVEA_POSIX)
#include <pthread.h>
#endif

namespace fovea {
namespace {

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");  // `yield` does nothing on the cores we know; this gives some nanoseconds of rest
#elif defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/// Whether `word` says another number than `old`, asleep or not.
bool changed(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
    return (word.load(std::memory_order_acquire) | 1) != (old | 1);
}

#if defined(FOVEA_POSIX)

// Pauses between looks at the clock: about a microsecond if a pause is 40 ns, a tenth of one if it is nothing.
constexpr int kPausesPerLook = 32;

/// Nanoseconds of a clock that only moves forward.
std::uint64_t clock_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Whether the number left `old` within spin_ns.
bool spin(const std::atomic<std::uint32_t>& word, std::uint32_t old, std::uint64_t spin_ns, bool alone) noexcept {
    const std::uint64_t start = clock_ns();
    do {
        for (int i = 0; i < kPausesPerLook; ++i) {
            if (changed(word, old)) return true;
            alone ? pause() : static_cast<void>(sched_yield());
        }
    } while (clock_ns() - start < spin_ns);
    return false;
}

#else

/// Without a system there is neither a clock nor sleep.
bool spin(const std::atomic<std::uint32_t>& word, std::uint32_t old, std::uint64_t, bool) noexcept {
    while (!changed(word, old)) pause();
    return true;
}

#endif

#if defined(__linux__)

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

#if defined(SYS_futex)
constexpr long kFutex = SYS_futex;
#else
constexpr long kFutex = SYS_futex_time64;  // the only one that newer 32-bit machines have
#endif

/// Until `word` is no longer `asleep`.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t asleep) noexcept {
    while (word.load(std::memory_order_acquire) == asleep)
        syscall(kFutex, &word, FUTEX_WAIT_PRIVATE, asleep, nullptr, nullptr, 0);
}

/// The word may no longer exist, since its change may have ended its owner: the kernel looks only at the address.
void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
    constexpr int kAll = 0x7fffffff;
    syscall(kFutex, &word, FUTEX_WAKE_PRIVATE, kAll, nullptr, nullptr, 0);
}

#elif defined(FOVEA_POSIX)

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t asleep) noexcept {
    pthread_mutex_lock(&mutex);
    while (word.load(std::memory_order_acquire) == asleep) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

/// The mutex makes sure that no sleeper is between its look and its sleep.
void wake_all(const std::atomic<std::uint32_t>&) noexcept {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_cond_broadcast(&condition);
}

#else

void sleep_while(const std::atomic<std::uint32_t>&, std::uint32_t) noexcept {}
void wake_all(const std::atomic<std::uint32_t>&) noexcept {}

#endif

}  // namespace

void Epoch::wait(std::uint32_t old, std::uint64_t spin_ns, bool alone) noexcept {
    const std::uint32_t awake = old << 1;
    if (spin(word_, awake, spin_ns, alone)) return;
    std::uint32_t had = awake;
    if (!word_.compare_exchange_strong(had, awake | 1, std::memory_order_acquire, std::memory_order_acquire) &&
        had != (awake | 1))
        return;
    sleep_while(word_, awake | 1);
}

void Epoch::set(std::uint32_t value) noexcept {
    if (word_.exchange(value << 1, std::memory_order_acq_rel) & 1) wake_all(word_);
}

}  // namespace fovea
