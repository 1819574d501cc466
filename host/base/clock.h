// Times since some moment of the past, for differences.
#pragma once
#include <chrono>
#include <cstdint>

namespace fovea::host {

[[nodiscard]] inline double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// As Speculation::clock wants it.
[[nodiscard]] inline std::uint64_t ticks_now() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace fovea::host
