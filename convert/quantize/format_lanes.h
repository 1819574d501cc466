// Sixteen rows of weights quantized side by side in the formats beyond q8 and q4.
#pragma once
#include <cstdint>
#include <span>

#include "convert/quantize/quantize.h"

namespace fovea {

/// The quantized columns of sixteen rows.
struct FormatLanes {
    QuantizedGroup groups[kFactorColumns / kGroup][kLanes];
    double errors[kLanes], totals[kLanes];  ///< of each row Σ(x − element)² and Σx², columns in order
    bool overflow;                          ///< a finite x has no finite element
};

/// Each row's 256 columns, or as many as are left, become groups of 32 with the least squared error of those tried:
///   q5_k, q4_k,
///   q2_k          each group's scale and minimum by linear regression on its quants, from several ranges; then both as
///                 multiples of the factors, of which the neighbours are tried too
///   q4_1, q5_1    the same, each rounded to float16
///   q6_k, q3_k    each half group's scale by least squares, then as multiples of the factor
///   q5            each group's scale by least squares, rounded to float16
///   iq4_nl        only each group's scale, by least squares on the entries that several scales give
///   iq4_xs        the same, then as multiples of the factor
///   mxfp4         each group's scale, the best of three powers of two
///   tq2_0         one scale for all: of −1, 0 and 1 times it, never 2
///   q8_128        amax/127 for every 128 of them
/// x [n][16], column by column, n <= 256. Missing columns of a last group count as 0. An x that is not finite makes its
/// group's scale, or all its row's factors, NaN; a factor beyond float16 is infinite.
struct FormatQuantizer {
    const char* isa;
    void (*quantize)(Type type, const float (*x)[kLanes], std::uint32_t n, FormatLanes& out) noexcept;
};

/// The same for each width of vectors that this CPU can run, the fastest first. All give the same bits.
[[nodiscard]] std::span<const FormatQuantizer> format_quantizers() noexcept;

}  // namespace fovea
