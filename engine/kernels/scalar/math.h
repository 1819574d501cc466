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

/// The same in integers, for CPUs whose doubles are software. Both terms stand in 62 bits of the larger one's unit; what is shifted
/// out of the other is kept as its last bit. That happens only where no leading bits cancel, so that rounding sees enough.
inline float fma_in_integers(float a, float b, float c) {
    constexpr std::uint32_t kMantissa = 0x7fffffu, kHidden = 0x800000u, kSign = 0x80000000u;
    const std::uint32_t product_sign = (bits(a) ^ bits(b)) & kSign, addend_sign = bits(c) & kSign;
    const auto exponent = [](float x) { return static_cast<std::int32_t>(bits(x) >> 23 & 255u); };
    const auto mantissa = [](float x) { return static_cast<std::uint64_t>((bits(x) & kMantissa) | kHidden); };
    const auto is_normal = [&](float x) { return static_cast<std::uint32_t>(exponent(x) - 1) < 254u; };
    if (!is_normal(a) || !is_normal(b) || !is_normal(c)) return fma_in_double(a, b, c);
    std::uint64_t product = (mantissa(a) * mantissa(b)) << 14, addend = mantissa(c) << 38;
    const auto shift = [](std::uint64_t& term, std::int32_t n) {
        const std::uint64_t kept = n < 64 ? term >> n : 0;
        term = kept | (n >= 64 || kept << n != term);
    };
    std::int32_t unit = exponent(c) - 188;  // a power of two
    const std::int32_t distance = exponent(a) + exponent(b) - 314 - unit;
    if (distance >= 0) {
        shift(addend, distance);
        unit += distance;
    } else {
        shift(product, -distance);
    }
    std::uint32_t sign = product_sign;
    std::uint64_t sum = product + addend;
    if (product_sign != addend_sign) {
        sum = product - addend;
        if (product == addend) return 0;
        if (product < addend) {
            sum = addend - product;
            sign = addend_sign;
        }
    }
    const std::int32_t n_leading = __builtin_clzll(sum), result_exponent = unit + 190 - n_leading;
    if (static_cast<std::uint32_t>(result_exponent - 1) >= 254u)
        return fma_in_double(a, b, c);  // subnormal or infinite
    sum <<= n_leading;
    const auto high = static_cast<std::uint32_t>(sum >> 32), rest = high & 255u;
    const bool up = rest > 128 || (rest == 128 && (static_cast<std::uint32_t>(sum) != 0 || (high & 256u) != 0));
    return float_of(sign | ((static_cast<std::uint32_t>(result_exponent) << 23) + (high >> 8 & kMantissa) + up));
}

inline float fma_f32(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__riscv_flen)
    return __builtin_fmaf(a, b, c);  // never libm's: without the instruction some targets round twice
#elif (defined(__arm__) && !defined(__ARM_FP)) || defined(__riscv) || defined(__XTENSA__)
    return fma_in_integers(a, b, c);
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
