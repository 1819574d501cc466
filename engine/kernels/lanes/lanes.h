// Sixteen float lanes: the only vector type of kernels, and the only place that knows registers.
//
// Each instruction set's header defines, in an anonymous namespace, three types and these operations. Lane i of a
// result depends only on lane i of the operands, floats follow IEEE 754 (nearest even, subnormals kept), and every
// result is rounded once.
//
//   F32x16
//     load(p)             p[0..16) as floats; p is to const float, Half, Bfloat or std::int8_t, of any alignment
//     load_nibbles<n>(p)  bits n to n + 3 of each of 16 bytes, as floats; n is 0 or 4
//     load_part(p, n)     p[0..n), zeros after; reads nothing at or beyond p + n; n <= 16
//     store(x, p)         p[0..16) = x; p is float* or Half* (rounded to nearest even)
//     store_part(x, p, n) p[0..n) = x; writes nothing at or beyond p + n
//     splat(f)            f in every lane
//     keep(x)             x, unchanged, in registers: a compiler may otherwise load it again at each use
//     a + b, a - b, a * b, a / b, sqrt(a)
//     fma(a, b, c)        a·b + c, rounded once; a may be a float
//     max(a, b)           a > b ? a : b, so b if either is NaN and b for two zeros
//     a > b, a < b, a == b   Mask16; false if either is NaN
//     fold_sum(a)         lane i += lane i + 8, then + 4, + 2, + 1: lane 0
//     fold_max(a)         the same tree with max(lane i, lane i + k)
//     swap_neighbours(a)  lanes 2i and 2i + 1 exchanged
//     transpose4(a, b, c, d)  within each quarter q: a, b, c, d become lanes 4q, 4q + 1, 4q + 2, 4q + 3 of all four
//     store_quarters(x, p, stride)  lanes 4q to 4q + 3 to p + q·stride, for q = 0 to 3
//   Mask16
//     select(mask, a, b)  a where the mask is set, else b
//     lanes_between(begin, end)  lanes i with begin <= i < end; any ints
//   U32x16
//     bits(x), floats(u)  the same 32 bits
//     splat_bits(n), a + b (modulo 2^32), a & b, a | b, a ^ b, shift_left<n>(a)
//     even_signs()        0x80000000 in even lanes, 0 in odd ones
//     nonzero(a)          Mask16: lanes that are not 0
#pragma once
#include <cstddef>
#include <cstdint>

namespace fovea {
namespace {

/// Elements of a weight matrix or cache as they are stored.
struct Half {
    std::uint16_t bits;
};
struct Bfloat {
    std::uint16_t bits;
};

}  // namespace
}  // namespace fovea

#if defined(__AVX512F__)
#include "engine/kernels/lanes/avx512.h"
#elif defined(__AVX2__)
#include "engine/kernels/lanes/avx2.h"
#elif defined(__aarch64__)
#include "engine/kernels/lanes/neon.h"
#elif defined(__wasm_simd128__)
#include "engine/kernels/lanes/simd128.h"
#else
#error "no lanes for this instruction set"
#endif

namespace fovea {
namespace {

/// NaN becomes the one NaN that is stored, 0x7fc00000.
[[gnu::always_inline]] inline F32x16 canonical(F32x16 x) { return select(x == x, x, floats(splat_bits(0x7fc00000u))); }

/// The sign bit flipped, NaN or not.
[[gnu::always_inline]] inline F32x16 operator-(F32x16 x) { return floats(bits(x) ^ splat_bits(0x80000000u)); }

[[gnu::always_inline]] inline F32x16 magnitude(F32x16 x) { return floats(bits(x) & splat_bits(0x7fffffffu)); }

}  // namespace
}  // namespace fovea
