// Integer products with WebAssembly's SIMD128, or with relaxed SIMD; see quants.h.
#pragma once
#include "engine/kernels/lanes/lanes.h"

namespace fovea {
namespace {

struct QuantTiling {
    static constexpr std::uint32_t kRows = 2;
    static constexpr std::uint32_t kLiveSums = 2;
    static constexpr std::uint32_t kMostPanels = 2;
    static constexpr std::uint32_t kStreamRows = 0;
    static constexpr std::size_t kOperandBytes = 256 << 10;
    static constexpr bool kPairs = false;
};

struct Bytes {
    v128_t q[4];
};
template<class F, class... B>
FOVEA_LANES Bytes each_quarter(F f, B... x) {
    return {f(x.q[0]...), f(x.q[1]...), f(x.q[2]...), f(x.q[3]...)};
}
FOVEA_LANES Bytes bytes(const std::byte* p) {
    return {wasm_v128_load(p), wasm_v128_load(p + 16), wasm_v128_load(p + 32), wasm_v128_load(p + 48)};
}
FOVEA_LANES void store(Bytes x, std::byte* p) {
    for (int i = 0; i < 4; ++i) wasm_v128_store(p + 16 * i, x.q[i]);
}
FOVEA_LANES Bytes low_nibbles(Bytes w) {
    return each_quarter([](v128_t x) { return wasm_v128_and(x, wasm_i8x16_const_splat(15)); }, w);
}
FOVEA_LANES Bytes high_nibbles(Bytes w) {
    return low_nibbles(each_quarter([](v128_t x) { return wasm_u16x8_shr(x, 4); }, w));
}
FOVEA_LANES Bytes operator|(Bytes a, Bytes b) {
    return each_quarter([](v128_t x, v128_t y) { return wasm_v128_or(x, y); }, a, b);
}
FOVEA_LANES Bytes join_nibbles(Bytes w, bool high, Bytes more) {
    return (high ? high_nibbles(w) : low_nibbles(w)) | more;
}
FOVEA_LANES Bytes moved_bits(Bytes w, int from, int to, int mask) {
    const v128_t of_mask = wasm_i8x16_splat(static_cast<std::int8_t>(mask));
    return each_quarter(
        [=](v128_t x) {
            const v128_t moved = from < to ? wasm_i16x8_shl(x, static_cast<std::uint32_t>(to - from))
                                           : wasm_u16x8_shr(x, static_cast<std::uint32_t>(from - to));
            return wasm_v128_and(moved, of_mask);
        },
        w);
}
inline constexpr bool kSameProducts = false;
FOVEA_LANES Bytes signed_cell(Bytes w) { return w; }
FOVEA_LANES Bytes lookup(Bytes w, const std::int8_t* codebook) {
    const v128_t table = wasm_v128_load(codebook);
    return each_quarter([=](v128_t x) { return wasm_i8x16_swizzle(table, x); }, w);
}
FOVEA_LANES Bytes codebook_cell(Bytes w, const std::int8_t* codebook) { return lookup(w, codebook); }
FOVEA_LANES Bytes less(Bytes w, int n) {
    const v128_t of_n = wasm_i8x16_splat(static_cast<std::int8_t>(n));
    return each_quarter([=](v128_t x) { return wasm_i8x16_sub(x, of_n); }, w);
}
template<int kZero>
FOVEA_LANES Bytes centred_cell(Bytes w) {
    return less(w, kZero);
}
FOVEA_LANES void store_bytes(U32x16 x, std::byte* p) {
    const auto narrow = [&](int i) { return wasm_u16x8_narrow_i32x4((v128_t)x.q[i], (v128_t)x.q[i + 1]); };
    wasm_v128_store(p, wasm_u8x16_narrow_i16x8(narrow(0), narrow(2)));
}

#if defined(__wasm_relaxed_simd__)

/// Whether cells of that type hold numbers of five bits at most, without a sign.
template<Type kType>
inline constexpr bool kUnsignedCells = format_of(kType).bits <= 5 && !format_of(kType).codebook &&
                                       (format_of(kType).minima || has_packed_zero(kType));

struct Dot {
    v128_t q[4];   // sixteen int32 sums
    v128_t signs;  // of signed cells: Σ|x|·s, which is to be taken from each
};
/// i32x4.relaxed_dot_i8x16_i7x16_add is exact if the second bytes are in [0, 127]. Unsigned cells are. Signed ones change places with an
/// operand's quants: x·w = |x|·(w ^ s) − |x|·s, with s = −1 if x is negative, else 0. |x| <= 127, so two products fit int16.
template<Type kType>
FOVEA_LANES Dot add_products(Dot sum, Bytes cell, const std::byte* x) {
    const v128_t four = wasm_v128_load32_splat(x);
    const auto add = [](v128_t s, v128_t any, v128_t small) {
        return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(any, small, s);
    };
    if constexpr (kUnsignedCells<kType>) {
        for (int i = 0; i < 4; ++i) sum.q[i] = add(sum.q[i], four, cell.q[i]);
    } else {
        const v128_t size = wasm_i8x16_abs(four), sign = wasm_i8x16_lt(four, wasm_i8x16_const_splat(0));
        for (int i = 0; i < 4; ++i) sum.q[i] = add(sum.q[i], wasm_v128_xor(cell.q[i], sign), size);
        sum.signs = add(sum.signs, sign, size);
    }
    return sum;
}
/// The sums of rows 4i to 4i + 3.
template<Type kType>
FOVEA_LANES v128_t whole(const Dot& dot, int i) {
    return kUnsignedCells<kType> ? dot.q[i] : wasm_i32x4_sub(dot.q[i], dot.signs);
}

#else

using Dot = Bytes;  // sixteen int32 sums, times 256
/// i32x4.dot_i16x8_s multiplies int16 by twos, so a cell's even columns and its odd ones are taken as int16, each times 256: shifting
/// and masking cost as little as widening, and a row's sum stays in one lane. |sum|·256 of a broad group is at most 2^29.
template<Type>
FOVEA_LANES Dot add_products(Dot sum, Bytes cell, const std::byte* x) {
    const v128_t four = wasm_v128_load32_splat(x);
    const v128_t odd = wasm_i16x8_shr(four, 8), even = wasm_i16x8_shr(wasm_i16x8_shl(four, 8), 8);
    return each_quarter(
        [=](v128_t s, v128_t w) {
            const v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_shl(w, 8), even);
            const v128_t high = wasm_i32x4_dot_i16x8(wasm_v128_and(w, wasm_i16x8_const_splat(-256)), odd);
            return wasm_i32x4_add(s, wasm_i32x4_add(low, high));
        },
        sum, cell);
}
template<Type>
FOVEA_LANES v128_t whole(const Dot& dot, int i) {
    return wasm_i32x4_shr(dot.q[i], 8);
}

#endif

FOVEA_LANES void keep(Dot&) {}
template<Type kType, std::uint32_t kRows>
using Starts = typename StartsOf<kType, kRows>::Found;
template<Type>
FOVEA_LANES Dot begin_sum(const std::byte*) {
    return {};
}
template<Type kType>
FOVEA_LANES F32x16 end_sum(const Dot& dot, const std::byte* start) {
    v128_t first = wasm_i32x4_const_splat(0);
    if constexpr (has_packed_zero(kType)) first = wasm_i32x4_splat(word(start) * (format_of(kType).zero / 8));
    const auto number = [&](int i) {
        return (Floats4)wasm_f32x4_convert_i32x4(wasm_i32x4_add(whole<kType>(dot, i), first));
    };
    return {number(0), number(1), number(2), number(3)};
}

}  // namespace
}  // namespace fovea
