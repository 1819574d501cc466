// Weights in the formats whose groups share factors or stand for a codebook's numbers: q6_k, q5_k, q4_k, q3_k, q2_k,
// iq4_nl, iq4_xs, mxfp4, tq2_0, q8_128; and where a group of any quantized type lies in a panel.
#pragma once
#include <cstdint>

#include "convert/quantize.h"

namespace fovea {

/// A row's 256 columns, or as many as are left, become groups of 32 with the least squared error of those tried:
///   q5_k, q4_k,
///   q2_k          each group's scale and minimum by linear regression on its quants, from several ranges; then both as
///                 multiples of the factors, of which the neighbours are tried too
///   q6_k, q3_k    each half group's scale by least squares, then the same
///   iq4_nl, mxfp4 each group's scale alone
///   iq4_xs        the same, then as multiples of the factor
///   tq2_0         one scale for all: of −1, 0 and 1 times it, never 2
///   q8_128        amax/127 for every 128 of them
/// x [n] with n <= 256; out [n / 32 rounded up]. What is missing of a last group counts as 0. An x that is not finite
/// makes its group's scale, or all their factors, NaN; a factor beyond float16 is infinite.
void quantize_format(Type type, const float* x, std::uint32_t n, QuantizedGroup* out) noexcept;

/// Writes a group to a panel's bytes, which are zero before: `lane` of 16, columns from 32·index on.
void put_group(Type type, const QuantizedGroup& group, std::uint32_t lane, std::uint32_t index,
               std::byte* panel) noexcept;

/// The quant of those a group may have at i, with its scales as they are, whose element is nearest to x; 0 where x is not
/// finite, or the scale.
[[nodiscard]] std::int8_t nearest_quant(Type type, const QuantizedGroup& group, std::uint32_t i, double x) noexcept;

/// The group's element i as a kernel sees it.
[[nodiscard]] double element_of(Type type, const QuantizedGroup& group, std::uint32_t i) noexcept;

}  // namespace fovea
