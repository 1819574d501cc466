#pragma once
#include <cstdint>

namespace fovea {

/// Nanoseconds of a clock that only moves forward.
[[nodiscard]] std::uint64_t clock_ns() noexcept;

}  // namespace fovea
