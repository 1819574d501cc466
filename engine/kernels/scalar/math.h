// The elementary operations of the scalar kernels, exactly: each arithmetic sign below is one float32 operation,
// rounded to nearest even, a fma is rounded once, and a comparison with NaN does not hold. Nothing else is used, so
// every vector table that does the same gives the same bits. Everything has internal linkage: a file with flags of its
// own may include this, and no other file gets its instructions.
#pragma once
#include <bit>
#include <cfloat>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/constants.h"

static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must be float32 arithmetic");

namespace fovea {
namespace {

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float float_of(std::uint32_t x) { return std::bit_cast<float>(x); }
inline float magnitude(float x) { return float_of(bits(x) & 0x7fffffffu); }
inline float with_sign_of(float y, float x) { return float_of(bits(y) | (bits(x) & 0x80000000u)); }

inline float canonical(float x) { return x != x ? float_of(kNan) : x; }

/// A NaN in a or b gives b: as x86's maxps does, and other machines are made to do.
inline float max_of(float a, float b) { return a > b ? a : b; }

/// a·b + c rounded once, without an instruction for it (Boldo and Melquiond 2008): the product is exact in double, the
/// sum's error is known exactly (Knuth's TwoSum), and rounding the sum to odd instead of to even leaves narrowing it to
/// float32, subnormal or not, as the only rounding that counts. Infinities and NaN make the error NaN and pass through.
inline float fma_in_double(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = static_cast<double>(c);
    double sum = product + addend;
    // Narrowing can only go wrong if the sum has come to lie in the middle between two floats, on 28 zero bits.
    if ((std::bit_cast<std::uint64_t>(sum) & 0x0fffffffu) != 0) [[likely]]
        return static_cast<float>(sum);
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    std::uint64_t sum_bits = std::bit_cast<std::uint64_t>(sum);
    if ((error > 0 || error < 0) && (sum_bits & 1) == 0) {
        sum_bits += (error > 0) == (sum > 0) ? 1u : ~std::uint64_t{0};
        sum = std::bit_cast<double>(sum_bits);
    }
    return static_cast<float>(sum);
}

inline float fma_f32(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__riscv_flen)
    return __builtin_fmaf(a, b, c);  // never libm's: without the instruction some targets round twice
#else
    return fma_in_double(a, b, c);
#endif
}

/// binary32 to binary16, round to nearest even; NaN becomes 0x7e00. What is stored in a cache stays finite if it was: numbers
/// beyond float16's become ±65504, and only infinities infinite.
inline std::uint16_t to_f16(float x) {
    const std::uint32_t sign = (bits(x) & 0x80000000u) >> 16;
    const std::uint32_t size = bits(x) & 0x7fffffffu;
    if (size >= 0x7f800000u) return static_cast<std::uint16_t>(size > 0x7f800000u ? 0x7e00u : sign | 0x7c00u);
    std::uint32_t half;
    if (size < 0x38800000u) {
        // Below 2⁻¹⁴: adding 0.5 leaves 2⁻²⁴, the unit of subnormal halves, as the last bit, rounded to even.
        half = bits(float_of(size) + 0.5f) - bits(0.5f);
    } else {
        const std::uint32_t odd = (size >> 13) & 1u;
        half = (size - (112u << 23) + 0xfffu + odd) >> 13;
        if (half > 0x7bffu) half = 0x7bff;
    }
    return static_cast<std::uint16_t>(sign | half);
}

/// c[0] + c[1]·x + c[2]·x² + …, by Horner's rule: one fma for each coefficient but the last.
template<std::size_t n>
float polynomial(float x, const float (&c)[n]) {
    float sum = c[n - 1];
    for (std::size_t i = 2; i <= n; ++i) sum = fma_f32(sum, x, c[n - i]);
    return sum;
}

// The rest of what math.h builds on.
inline float fma(float a, float b, float c) { return fma_f32(a, b, c); }
inline float select(bool mask, float a, float b) { return mask ? a : b; }
inline float constant(float, float c) { return c; }
inline std::uint32_t constant(std::uint32_t, std::uint32_t n) { return n; }
inline float floats(std::uint32_t x) { return float_of(x); }
inline bool nonzero(std::uint32_t x) { return x != 0; }
template<int n>
std::uint32_t shift_left(std::uint32_t x) {
    return x << n;
}

}  // namespace
}  // namespace fovea
