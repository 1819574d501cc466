// Integer products with WebAssembly's SIMD128; see quants.h. i32x4.dot_i16x8_s multiplies int16 by twos, so a cell's even
// columns and its odd ones are taken as int16, each times 256: shifting and masking cost as little as widening, and a row's
// sum stays in one lane. |sum|·256 of a broad group is at most 2^29.
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
using Dot = Bytes;  // sixteen int32 sums, times 256

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
FOVEA_LANES void keep(Dot&) {}
template<Type kType, std::uint32_t kRows>
using Starts = typename StartsOf<kType, kRows>::Found;
template<Type>
FOVEA_LANES Dot begin_sum(const std::byte*) {
    return {};
}
template<Type kType>
FOVEA_LANES F32x16 end_sum(Dot dot, const std::byte* start) {
    v128_t first = wasm_i32x4_const_splat(0);
    if constexpr (has_packed_zero(kType)) first = wasm_i32x4_splat(word(start) * (format_of(kType).zero / 8));
    const auto number = [=](v128_t sum) {
        return (Floats4)wasm_f32x4_convert_i32x4(wasm_i32x4_add(wasm_i32x4_shr(sum, 8), first));
    };
    return {number(dot.q[0]), number(dot.q[1]), number(dot.q[2]), number(dot.q[3])};
}

}  // namespace
}  // namespace fovea
