// The formats beyond q8 and q4 one row after the other and one number after the other, as convert/quantize/format_lanes.h says.
#pragma once
#include <cstdint>

#include "convert/quantize/quantize.h"

namespace fovea::testing {

/// x [n] with n <= 256; out [n / 32 rounded up].
void quantize_row(Type type, const float* x, std::uint32_t n, QuantizedGroup* out) noexcept;

}  // namespace fovea::testing
