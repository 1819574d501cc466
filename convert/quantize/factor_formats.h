// Weights in the formats beyond q8 and q4; and where a group of any quantized type lies in a panel.
#pragma once
#include <cstdint>

#include "convert/quantize/quantize.h"

namespace fovea {

/// Least and largest quant of a group, as whole numbers; for a codebook, indices into it.
struct QuantRange {
    std::int32_t least, most;
};

/// The range of a quantized type. Eight bits are as far below zero as above it. The two bits of tq2_0 hold three numbers; a type
/// of two bits with four of them would have them all.
[[nodiscard]] constexpr QuantRange quant_range(Type type) noexcept {
    const QuantFormat& format = format_of(type);
    if (format.bits == 8) return {-127, 127};
    if (type == Type::tq2_0) return {-1, 1};
    return {-format.zero, (1 << format.bits) - 1 - format.zero};
}

/// Writes a group to a panel's bytes, which are zero before: `lane` of 16, columns from 32·index on.
void put_group(Type type, const QuantizedGroup& group, std::uint32_t lane, std::uint32_t index,
               std::byte* panel) noexcept;

/// The quant whose element i, with the group's scales as they are, is nearest to x; 0 if x or the scale is not finite.
[[nodiscard]] std::int8_t nearest_quant(Type type, const QuantizedGroup& group, std::uint32_t i, double x) noexcept;

/// The group's element i as a kernel sees it.
[[nodiscard]] double element_of(Type type, const QuantizedGroup& group, std::uint32_t i) noexcept;

}  // namespace fovea
