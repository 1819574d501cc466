// The operations that math.h builds on, over sixteen lanes.
#pragma once
#include "engine/kernels/lanes/lanes.h"

namespace fovea {
namespace {

template<std::size_t n>
FOVEA_LANES F32x16 polynomial(F32x16 x, const float (&c)[n]) {
    F32x16 sum = splat(c[n - 1]);
    _Pragma("GCC unroll 16") for (std::size_t i = 2; i <= n; ++i) sum = fma(sum, x, splat(c[n - i]));
    return sum;
}

FOVEA_LANES F32x16 with_sign_of(F32x16 y, F32x16 x) { return floats(bits(y) | (bits(x) & splat_bits(0x80000000u))); }
FOVEA_LANES F32x16 constant(F32x16, float c) { return splat(c); }
FOVEA_LANES U32x16 constant(U32x16, std::uint32_t n) { return splat_bits(n); }

}  // namespace
}  // namespace fovea

#include "engine/kernels/math.h"
