#pragma once
#include <cstdint>

namespace fovea {

/// Nanoseconds of a clock that only moves forward. Defined where there is an operating system; the engine's results
/// never depend on it.
[[nodiscard]] std::uint64_t clock_ns() noexcept;

}  // namespace fovea
