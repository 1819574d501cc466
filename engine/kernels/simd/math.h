// exp, tanh, erf, sine, cosine and the activations over sixteen lanes, operation by operation as in constants.h.
#pragma once
#include "../constants.h"
#include "fovea/config.h"
#include "lanes.h"

namespace fovea {
namespace {

/// p·z + coefficient: one step of a polynomial.
FOVEA_LANES F32x16 step(F32x16 p, F32x16 z, float coefficient) { return fma(p, z, splat(coefficient)); }

FOVEA_LANES F32x16 with_sign_of(F32x16 x, F32x16 y) { return floats(bits(y) | (bits(x) & splat_bits(0x80000000u))); }

FOVEA_LANES F32x16 exp(F32x16 x) {
    const F32x16 c = select(x > splat(kExpMax), splat(kExpMax), x);
    const F32x16 t = fma(c, splat(kLog2E), splat(kRound));
    const F32x16 n = t - splat(kRound);
    const F32x16 r = fma(n, splat(-kLn2Low), fma(n, splat(-kLn2High), c));
    F32x16 p = step(splat(kExp4), r, kExp3);
    p = step(p, r, kExp2);
    p = step(p, r, kExp1);
    p = step(p, r, kExp0);
    p = step(step(p, r, 1.0f), r, 1.0f);
    const F32x16 y = p * floats(shift_left<23>(bits(t)) + splat_bits(kExpBias));
    return select(x < splat(kExpMin), splat(0.0f), y * splat(2.0f));
}

FOVEA_LANES F32x16 tanh(F32x16 x) {
    const F32x16 a = magnitude(x), z = a * a;
    F32x16 p = step(splat(kTanh4), z, kTanh3);
    p = step(p, z, kTanh2);
    p = step(p, z, kTanh1);
    p = step(p, z, kTanh0);
    const F32x16 small = fma(a * z, p, a);
    const F32x16 large = splat(1.0f) - splat(2.0f) / (exp(a + a) + splat(1.0f));
    return with_sign_of(x, select(a < splat(kTanhSmall), small, large));
}

FOVEA_LANES F32x16 erf(F32x16 x) {
    const F32x16 a = magnitude(x), z = a * a;
    F32x16 p = step(splat(kErf5), z, kErf4);
    p = step(p, z, kErf3);
    p = step(p, z, kErf2);
    p = step(p, z, kErf1);
    p = step(p, z, kErf0);
    const F32x16 small = fma(a, p, a);
    const F32x16 c = select(a > splat(kErfMax), splat(kErfMax), a);
    F32x16 q = step(splat(kErfc6), c, kErfc5);
    q = step(q, c, kErfc4);
    q = step(q, c, kErfc3);
    q = step(q, c, kErfc2);
    q = step(q, c, kErfc1);
    q = step(q, c, kErfc0);
    const F32x16 large = splat(1.0f) - exp(q);
    return with_sign_of(x, select(a < splat(kErfSmall), small, large));
}

/// sin(x + quarter_turns·π/2); quarter_turns is 0 or 1.
FOVEA_LANES F32x16 sine(F32x16 x, std::uint32_t quarter_turns) {
    const F32x16 t = fma(x, splat(kTwoOverPi), splat(kRound));
    const F32x16 n = t - splat(kRound);
    F32x16 r = fma(n, splat(-kHalfPi0), x);
    r = fma(n, splat(-kHalfPi1), r);
    r = fma(n, splat(-kHalfPi2), r);
    const F32x16 z = r * r;
    const F32x16 s = fma(r * z, step(step(splat(kSin2), z, kSin1), z, kSin0), r);
    const F32x16 c = fma(z * z, step(step(splat(kCos2), z, kCos1), z, kCos0), step(z, splat(-0.5f), 1.0f));
    const U32x16 q = bits(t) + splat_bits(quarter_turns);
    const F32x16 y = select(nonzero(q & splat_bits(1)), c, s);
    const F32x16 turned = floats(bits(y) ^ shift_left<30>(q & splat_bits(2)));
    return select(magnitude(x) > splat(kSinMax), floats(splat_bits(0x7fc00000u)), turned);
}
FOVEA_LANES F32x16 sin(F32x16 x) { return sine(x, 0); }
FOVEA_LANES F32x16 cos(F32x16 x) { return sine(x, 1); }

FOVEA_LANES F32x16 relu(F32x16 x) { return select(splat(0.0f) > x, splat(0.0f), x); }
FOVEA_LANES F32x16 gelu(F32x16 x) { return (splat(0.5f) * x) * (splat(1.0f) + erf(x * splat(kSqrtHalf))); }
FOVEA_LANES F32x16 gelu_tanh(F32x16 x) {
    const F32x16 inner = x * step(x * x, splat(kGeluCubic), kGeluLinear);
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
