// exp, tanh, erf, sine, cosine and the activations over sixteen lanes, operation by operation as in scalar_math.h.
#pragma once
#include "../constants.h"
#include "fovea/config.h"
#include "lanes.h"

namespace fovea {
namespace {

template<std::size_t n>
FOVEA_LANES F32x16 polynomial(F32x16 x, const float (&c)[n]) {
    F32x16 sum = splat(c[n - 1]);
    _Pragma("GCC unroll 16") for (std::size_t i = 2; i <= n; ++i) sum = fma(sum, x, splat(c[n - i]));
    return sum;
}

FOVEA_LANES F32x16 with_sign_of(F32x16 x, F32x16 y) { return floats(bits(y) | (bits(x) & splat_bits(0x80000000u))); }

/// Where x is known to be at most 0 (or NaN), fewer steps come to the same bits.
template<bool kAtMost0 = false>
FOVEA_LANES F32x16 exp(F32x16 x) {
    const F32x16 round = splat(kAtMost0 ? kExpRound + 1.0f : kExpRound);
    const F32x16 c = kAtMost0 ? x : select(x > splat(kExpMax), splat(kExpMax), x);
    const F32x16 t = fma(c, splat(kLog2E), round);
    const F32x16 n = t - round;
    const F32x16 r = fma(n, splat(-kLn2Low), fma(n, splat(-kLn2High), c));
    const F32x16 y = polynomial(r, kExp) * floats(shift_left<23>(bits(t)));
    return select(x < splat(kExpMin), splat(0.0f), kAtMost0 ? y : y * splat(2.0f));
}

FOVEA_LANES F32x16 tanh(F32x16 x) {
    const F32x16 a = magnitude(x), z = a * a;
    const F32x16 small = fma(a * z, polynomial(z, kTanh), a);
    const F32x16 large = splat(1.0f) - splat(2.0f) / (exp(a + a) + splat(1.0f));
    return with_sign_of(x, select(a < splat(kTanhSmall), small, large));
}

FOVEA_LANES F32x16 erf(F32x16 x) {
    const F32x16 a = magnitude(x);
    const F32x16 small = fma(a, polynomial(a * a, kErf), a);
    const F32x16 c = select(a > splat(kErfMax), splat(kErfMax), a);
    const F32x16 large = splat(1.0f) - exp(polynomial(c, kErfc));
    return with_sign_of(x, select(a < splat(kErfSmall), small, large));
}

/// sin(x + quarter_turns·π/2); quarter_turns is 0 or 1.
FOVEA_LANES F32x16 sine(F32x16 x, std::uint32_t quarter_turns) {
    const F32x16 t = fma(x, splat(kTwoOverPi), splat(kRound));
    const F32x16 n = t - splat(kRound);
    F32x16 r = x;
    for (const float part : kHalfPi) r = fma(n, splat(-part), r);
    const F32x16 z = r * r;
    const F32x16 s = fma(r * z, polynomial(z, kSin), r);
    const F32x16 c = fma(z * z, polynomial(z, kCos), fma(z, splat(-0.5f), splat(1.0f)));
    const U32x16 q = bits(t) + splat_bits(quarter_turns);
    const F32x16 y = select(nonzero(q & splat_bits(1)), c, s);
    const F32x16 apply_sign = floats(bits(y) ^ shift_left<30>(q & splat_bits(2)));
    return select(magnitude(x) > splat(kSinMax), floats(splat_bits(0x7fc00000u)), apply_sign);
}
FOVEA_LANES F32x16 sin(F32x16 x) { return sine(x, 0); }
FOVEA_LANES F32x16 cos(F32x16 x) { return sine(x, 1); }

FOVEA_LANES F32x16 relu(F32x16 x) { return select(splat(0.0f) > x, splat(0.0f), x); }
FOVEA_LANES F32x16 gelu(F32x16 x) { return (splat(0.5f) * x) * (splat(1.0f) + erf(x * splat(kSqrtHalf))); }
FOVEA_LANES F32x16 gelu_tanh(F32x16 x) {
    const F32x16 inner = x * fma(x * x, splat(kGeluCubic), splat(kGeluLinear));
    return (splat(0.5f) * x) * (splat(1.0f) + tanh(inner));
}
FOVEA_LANES F32x16 silu(F32x16 x) { return x / (splat(1.0f) + exp(-x)); }
FOVEA_LANES F32x16 softcap(F32x16 x, F32x16 cap) { return cap * tanh(x / cap); }

template<Activation kActivation>
FOVEA_LANES F32x16 activate(F32x16 x) {
    switch (kActivation) {
        case Activation::none: return x;
        case Activation::relu: return relu(x);
        case Activation::gelu: return gelu(x);
        case Activation::gelu_tanh: return gelu_tanh(x);
        case Activation::silu: return silu(x);
    }
    return x;
}

}  // namespace
}  // namespace fovea
