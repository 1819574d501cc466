// A number that threads wait to see change. It is what barriers and waiting workers are made of.
#pragma once
#include <atomic>
#include <cstdint>

namespace fovea {

/// Nanoseconds for which a member waits at a barrier before it sleeps: longer than any phase's own jitter, shorter than a
/// scheduler's time slice by a factor of a hundred.
inline constexpr std::uint64_t kSpinNs = 50'000;

/// Counts from 0 to 2^31 − 1 and on from 0. What a thread wrote before set() is seen by those whose wait() it ended.
class Epoch {
public:
    [[nodiscard]] std::uint32_t value() const noexcept { return word_.load(std::memory_order_acquire) >> 1; }

    /// Waits until the value is no longer `old`: looks for about `spin_ns`, then sleeps where the system has a way to.
    /// Between looks it rests its core if it is `alone` there, and else gives the core to others.
    void wait(std::uint32_t old, std::uint64_t spin_ns, bool alone) noexcept;

    /// Makes `value` (modulo 2^31) the number and wakes all who sleep. Asks nothing of the system where nobody does.
    void set(std::uint32_t value) noexcept;

private:
    std::atomic<std::uint32_t> word_{0};  // twice the number, and 1 where somebody sleeps
};

}  // namespace fovea
