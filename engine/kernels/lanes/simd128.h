// F32x16 in four v128 of WebAssembly; see lanes.h for what each operation means. SIMD128 has no fused multiply-add, so fma goes through
// double precision, as scalar's does without an instruction. Relaxed SIMD has one that may round twice: detect_features finds out, and
// the kernels are used on engines that round once.
#pragma once
#include <wasm_simd128.h>

namespace fovea {
namespace {
using Floats4 = float __attribute__((vector_size(16)));
using Words4 = std::uint32_t __attribute__((vector_size(16)));
}  // namespace
}  // namespace fovea

#include "engine/kernels/lanes/four.h"

namespace fovea {
namespace {

/// Tile shapes: an engine has 16 registers on x86-64, and an fma needs most of them.
struct Tiling {
    static constexpr std::uint32_t kRows = 2;                // rows of an operand at once
    static constexpr std::uint32_t kLiveSums = 2;            // rows·panels at once
    static constexpr std::uint32_t kMostPanels = 2;          // panels at once with a single row
    static constexpr std::uint32_t kStreamRows = 0;          // rows up to which panels go one after another: one chain
    static constexpr std::uint32_t kLiveVectors = 0;         // a register is the engine's to choose, see keep
    static constexpr std::size_t kOperandBytes = 256 << 10;  // of rows taken together, in the L2
};

FOVEA_LANES Floats4 as_floats(v128_t x) { return (Floats4)x; }
FOVEA_LANES Words4 as_words(v128_t x) { return (Words4)x; }
FOVEA_LANES v128_t v128(Floats4 x) { return (v128_t)x; }
FOVEA_LANES v128_t v128(Words4 x) { return (v128_t)x; }

FOVEA_LANES Mask16 lanes_between(int begin, int end) {
    return each_lane([=](int lane) {
        const v128_t lanes = wasm_i32x4_add(wasm_i32x4_make(0, 1, 2, 3), wasm_i32x4_splat(lane));
        return as_words(
            wasm_v128_and(wasm_i32x4_ge(lanes, wasm_i32x4_splat(begin)), wasm_i32x4_lt(lanes, wasm_i32x4_splat(end))));
    });
}

FOVEA_LANES F32x16 splat(float x) {
    return each_lane([=](int) { return as_floats(wasm_f32x4_splat(x)); });
}
FOVEA_LANES F32x16 load(const float* p) {
    return each_lane([=](int lane) { return as_floats(wasm_v128_load(p + lane)); });
}
/// Sign and exponent where a float has them make the number times 2⁻¹¹², subnormal or not; infinities and NaN want the float's
/// largest exponent.
FOVEA_LANES Floats4 widen_halves(v128_t halves) {  // each of them in 32 bits, its sign repeated
    const v128_t scaled = wasm_v128_and(wasm_i32x4_shl(halves, 13), wasm_i32x4_const_splat(0x8fffe000));
    const v128_t number = wasm_f32x4_mul(scaled, wasm_f32x4_const_splat(0x1p112f));
    const v128_t beyond = wasm_f32x4_ge(wasm_f32x4_abs(number), wasm_f32x4_const_splat(65536.0f));
    return as_floats(wasm_v128_or(number, wasm_v128_and(beyond, wasm_i32x4_const_splat(0x7f800000))));
}
FOVEA_LANES F32x16 load(const Half* p) {
    return each_lane([=](int lane) { return widen_halves(wasm_i32x4_load16x4(p + lane)); });
}
FOVEA_LANES F32x16 load(const Bfloat* p) {
    return each_lane([=](int lane) { return as_floats(wasm_i32x4_shl(wasm_u32x4_load16x4(p + lane), 16)); });
}
FOVEA_LANES F32x16 widen(v128_t bytes) {
    const v128_t low = wasm_i16x8_extend_low_i8x16(bytes), high = wasm_i16x8_extend_high_i8x16(bytes);
    const auto numbers = [](v128_t x) { return as_floats(wasm_f32x4_convert_i32x4(x)); };
    return {numbers(wasm_i32x4_extend_low_i16x8(low)), numbers(wasm_i32x4_extend_high_i16x8(low)),
            numbers(wasm_i32x4_extend_low_i16x8(high)), numbers(wasm_i32x4_extend_high_i16x8(high))};
}
FOVEA_LANES F32x16 load(const std::int8_t* p) { return widen(wasm_v128_load(p)); }
template<int kFrom>
FOVEA_LANES F32x16 load_nibbles(const std::int8_t* p) {
    return widen(wasm_v128_and(wasm_u16x8_shr(wasm_v128_load(p), kFrom), wasm_i8x16_const_splat(15)));
}
FOVEA_LANES void store(F32x16 x, float* p) {
    for (int i = 0; i < 4; ++i) wasm_v128_store(p + 4 * i, v128(x.q[i]));
}
/// Adding 0.5 leaves 2⁻²⁴, the unit of subnormal halves, as a small number's last bit; the others are rounded as integers.
FOVEA_LANES v128_t narrow(v128_t x) {
    const v128_t size = wasm_v128_and(x, wasm_i32x4_const_splat(0x7fffffff)), half = wasm_f32x4_const_splat(0.5f);
    const v128_t small = wasm_i32x4_sub(wasm_f32x4_add(size, half), half);
    const v128_t odd = wasm_v128_and(wasm_u32x4_shr(size, 13), wasm_i32x4_const_splat(1));
    const v128_t rounded = wasm_i32x4_add(wasm_i32x4_sub(size, wasm_i32x4_const_splat((112 << 23) - 0xfff)), odd);
    const v128_t large = wasm_i32x4_min(wasm_u32x4_shr(rounded, 13), wasm_i32x4_const_splat(0x7c00));
    v128_t number = wasm_v128_bitselect(small, large, wasm_i32x4_lt(size, wasm_i32x4_const_splat(0x38800000)));
    const v128_t nan = wasm_i32x4_gt(size, wasm_i32x4_const_splat(0x7f800000));
    number = wasm_v128_bitselect(wasm_i32x4_const_splat(0x7e00), number, nan);
    const v128_t sign = wasm_v128_andnot(wasm_u32x4_shr(wasm_v128_xor(x, size), 16), nan);
    return wasm_v128_or(number, sign);
}
FOVEA_LANES void store(F32x16 x, Half* p) {
    for (int i = 0; i < 2; ++i)
        wasm_v128_store(p + 8 * i, wasm_u16x8_narrow_i32x4(narrow(v128(x.q[2 * i])), narrow(v128(x.q[2 * i + 1]))));
}

/// A compiler's registers are not the machine's.
FOVEA_LANES void keep(F32x16&) {}

FOVEA_LANES F32x16 sqrt(F32x16 a) {
    return each([](auto x) { return as_floats(wasm_f32x4_sqrt(v128(x))); }, a);
}

// ---- fma -----------------------------------------------------------------------------------------------------------

#if defined(__wasm_relaxed_simd__)

FOVEA_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return each(
        [](Floats4 x, Floats4 y, Floats4 z) { return as_floats(wasm_f32x4_relaxed_madd(v128(x), v128(y), v128(z))); },
        a, b, c);
}

#else

using Doubles2 = double __attribute__((vector_size(16)));
struct Doubles4 {
    Doubles2 low, high;
};
FOVEA_LANES Doubles4 widen(Floats4 x) {
    return {(Doubles2)wasm_f64x2_promote_low_f32x4(v128(x)),
            (Doubles2)wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(v128(x), v128(x), 2, 3, 2, 3))};
}
FOVEA_LANES Floats4 narrow(Doubles4 x) {
    return as_floats(wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero((v128_t)x.low),
                                        wasm_f32x4_demote_f64x2_zero((v128_t)x.high), 0, 1, 4, 5));
}
FOVEA_LANES Doubles4 operator+(Doubles4 a, Doubles4 b) { return {a.low + b.low, a.high + b.high}; }
FOVEA_LANES Doubles4 operator*(Doubles4 a, Doubles4 b) { return {a.low * b.low, a.high * b.high}; }

/// product + addend rounded to odd (Boldo and Melquiond 2008), by Knuth's TwoSum: see fma_in_double of scalar/math.h, which
/// does the same only where it counts.
FOVEA_LANES Doubles2 add_to_odd(Doubles2 product, Doubles2 addend) {
    using Longs2 = long long __attribute__((vector_size(16)));
    const Doubles2 sum = product + addend, part = sum - product;
    const Doubles2 error = (product - (sum - part)) + (addend - part), zero{};
    const Longs2 above = error > zero, bits = (Longs2)sum, one{1, 1};
    const Longs2 step = (above ^ (Longs2)(sum > zero)) | one;  // away from zero 1, else −1
    const Longs2 even = (bits & one) - one;
    return (Doubles2)(bits + (step & even & (above | (Longs2)(error < zero))));
}
[[gnu::noinline]] Floats4 fma_to_odd(Floats4 x, Floats4 y, Floats4 z) {
    const Doubles4 product = widen(x) * widen(y), addend = widen(z);
    return narrow({add_to_odd(product.low, addend.low), add_to_odd(product.high, addend.high)});
}

/// Narrowing a sum of doubles can only go wrong if it has come to lie in the middle between two floats, on 28 zero bits.
FOVEA_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    v128_t least = wasm_i32x4_const_splat(-1);
    const F32x16 rounded = each(
        [&](Floats4 x, Floats4 y, Floats4 z) __attribute__((always_inline)) {
            const Doubles4 sum = widen(x) * widen(y) + widen(z);
            const v128_t low_words = wasm_i32x4_shuffle((v128_t)sum.low, (v128_t)sum.high, 0, 2, 4, 6);
            least = wasm_u32x4_min(least, wasm_v128_and(low_words, wasm_i32x4_const_splat(0x0fffffff)));
            return narrow(sum);
        },
        a, b, c);
    if (wasm_i32x4_all_true(least)) [[likely]]
        return rounded;
    return each([](Floats4 x, Floats4 y, Floats4 z) { return fma_to_odd(x, y, z); }, a, b, c);
}

#endif

FOVEA_LANES F32x16 fma(float x, F32x16 b, F32x16 c) { return fma(splat(x), b, c); }

FOVEA_LANES Mask16 operator>(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return (Words4)(x > y); }, a, b);
}
FOVEA_LANES Mask16 operator<(F32x16 a, F32x16 b) { return b > a; }
FOVEA_LANES Mask16 operator==(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return (Words4)(x == y); }, a, b);
}
FOVEA_LANES Floats4 select(Words4 mask, Floats4 x, Floats4 y) {
    return as_floats(wasm_v128_bitselect(v128(x), v128(y), v128(mask)));
}
FOVEA_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) {
    return each([](auto mask, auto x, auto y) { return select(mask, x, y); }, m, a, b);
}
/// pmax(b, a) is b < a ? a : b, whatever is NaN or zero.
FOVEA_LANES Floats4 max(Floats4 x, Floats4 y) { return as_floats(wasm_f32x4_pmax(v128(y), v128(x))); }
FOVEA_LANES F32x16 max(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return max(x, y); }, a, b);
}

FOVEA_LANES U32x16 bits(F32x16 a) {
    return each([](auto x) { return (Words4)x; }, a);
}
FOVEA_LANES F32x16 floats(U32x16 a) {
    return each([](auto x) { return (Floats4)x; }, a);
}
FOVEA_LANES U32x16 splat_bits(std::uint32_t x) {
    return each_lane([=](int) { return Words4{x, x, x, x}; });
}
FOVEA_LANES U32x16 even_signs() {
    return each_lane([](int) { return Words4{0x80000000u, 0, 0x80000000u, 0}; });
}
FOVEA_LANES Mask16 nonzero(U32x16 a) {
    return each([](auto x) { return (Words4)(x != Words4{}); }, a);
}

FOVEA_LANES F32x16 swap_neighbours(F32x16 a) {
    return each([](auto x) { return as_floats(wasm_i32x4_shuffle(v128(x), v128(x), 1, 0, 3, 2)); }, a);
}
FOVEA_LANES void transpose4(F32x16& a, F32x16& b, F32x16& c, F32x16& d) {
    const auto first = [](auto x, auto y) { return as_floats(wasm_i32x4_shuffle(v128(x), v128(y), 0, 4, 1, 5)); };
    const auto second = [](auto x, auto y) { return as_floats(wasm_i32x4_shuffle(v128(x), v128(y), 2, 6, 3, 7)); };
    const F32x16 ac = each(first, a, c), bd = each(first, b, d), ca = each(second, a, c), db = each(second, b, d);
    a = each(first, ac, bd);
    b = each(second, ac, bd);
    c = each(first, ca, db);
    d = each(second, ca, db);
}
FOVEA_LANES void store_quarters(F32x16 x, float* p, std::size_t stride) {
    for (std::size_t i = 0; i < 4; ++i) wasm_v128_store(p + i * stride, v128(x.q[i]));
}
FOVEA_LANES Floats4 halves_swapped(Floats4 x) { return as_floats(wasm_i32x4_shuffle(v128(x), v128(x), 2, 3, 0, 1)); }
FOVEA_LANES float fold_sum(F32x16 a) {
    const Floats4 four = (a.q[0] + a.q[2]) + (a.q[1] + a.q[3]), two = four + halves_swapped(four);
    return two[0] + two[1];
}
FOVEA_LANES float fold_max(F32x16 a) {
    const Floats4 four = max(max(a.q[0], a.q[2]), max(a.q[1], a.q[3])), two = max(four, halves_swapped(four));
    return two[0] > two[1] ? two[0] : two[1];
}

}  // namespace
}  // namespace fovea
