// A number that threads wait to see change. Barriers and waiting workers are made of it.
#pragma once
#include <atomic>
#include <cstdint>

namespace fovea {

/// Nanoseconds for which a member waits at a barrier before it sleeps: longer than any phase's own jitter, shorter than a
/// scheduler's time slice by a factor of a hundred.
inline constexpr std::uint64_t kSpinNs = 50'000;

/// Counts from 0 to 2^31 − 1 and on from 0. A thread's writes before set() are seen by the threads whose wait() it
/// ended.
class Epoch {
public:
    [[nodiscard]] std::uint32_t value() const noexcept { return word_.load(std::memory_order_acquire) >> 1; }

    /// Waits until the value is no longer `old`: looks for about `spin_ns`, then sleeps if the system has a way to.
    /// Between looks it rests its core if it is `alone` there; else it yields the core.
    void wait(std::uint32_t old, std::uint64_t spin_ns, bool alone) noexcept;

    /// Makes `value` (modulo 2^31) the number and wakes all who sleep. Makes no system call if nobody sleeps.
    void set(std::uint32_t value) noexcept;

private:
    std::atomic<std::uint32_t> word_{0};  // twice the number, and 1 if somebody sleeps
};

}  // namespace fovea
