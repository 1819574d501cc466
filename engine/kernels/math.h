// exp, tanh, erf, sine, cosine and the activations, once for every type of value: a float (scalar/math.h) or sixteen lanes
// (lanes/math.h), whose file includes this one behind the operations that it names:
//
//     V   + − · /, > <, fma, select, magnitude, with_sign_of(y, x), polynomial, constant(V, float), bits(V)
//     U   + & ^, shift_left<n>, nonzero, constant(U, number), floats(U)
//
// Each of them is one float32 operation, rounded once, so that both types give the same bits. A change of their order
// changes results: raise kNumericsVersion. docs/numerics.md states each function's error.
#pragma once
#include "engine/format/parts.h"
#include "engine/kernels/constants.h"
#include "engine/kernels/kernels.h"

#ifndef FOVEA_LANES  // a float's functions are called
#define FOVEA_LANES inline
#endif

namespace fovea {
namespace {

/// x = n·ln 2 + r, e^x = 2^n·e^r (Cody and Waite 1980). If x is known to be at most 0 (or NaN), fewer steps come to
/// the same bits.
template<bool kAtMost0 = false, class V>
FOVEA_LANES V exp(V x) {
    const V round = constant(x, kAtMost0 ? kExpRound + 1.0f : kExpRound);
    const V c = kAtMost0 ? x : select(x > constant(x, kExpMax), constant(x, kExpMax), x);
    const V t = fma(c, constant(x, kLog2E), round);
    const V n = t - round;
    const V r = fma(n, constant(x, -kLn2Low), fma(n, constant(x, -kLn2High), c));
    // First times 2^(n − 1), so that 2^128 is never needed.
    const V y = polynomial(r, kExp) * floats(shift_left<23>(bits(t)));
    return select(x < constant(x, kExpMin), constant(x, 0.0f), kAtMost0 ? y : y * constant(x, 2.0f));
}

template<class V>
FOVEA_LANES V tanh(V x) {
    const V a = magnitude(x), z = a * a, one = constant(x, 1.0f);
    const V small = fma(a * z, polynomial(z, kTanh), a);
    const V large = one - constant(x, 2.0f) / (exp(a + a) + one);
    return with_sign_of(select(a < constant(x, kTanhSmall), small, large), x);
}

/// Small: a series in x²; large: 1 − e^q with q near log(erfc(a)).
template<class V>
FOVEA_LANES V erf(V x) {
    const V a = magnitude(x), most = constant(x, kErfMax);
    const V small = fma(a, polynomial(a * a, kErf), a);
    const V large = constant(x, 1.0f) - exp(polynomial(select(a > most, most, a), kErfc));
    return with_sign_of(select(a < constant(x, kErfSmall), small, large), x);
}

/// sin(x + quarter_turns·π/2); quarter_turns is 0 or 1: x = n·π/2 + r, and n mod 4 says which of ±sin(r), ±cos(r).
template<class V>
FOVEA_LANES V sine(V x, std::uint32_t quarter_turns) {
    const V round = constant(x, kRound);
    const V t = fma(x, constant(x, kTwoOverPi), round);
    const V n = t - round;
    V r = x;
    for (const float part : kHalfPi) r = fma(n, constant(x, -part), r);
    const V z = r * r;
    const V s = fma(r * z, polynomial(z, kSin), r);
    const V c = fma(z * z, polynomial(z, kCos), fma(z, constant(x, -0.5f), constant(x, 1.0f)));
    const auto t_bits = bits(t);
    const auto q = t_bits + constant(t_bits, quarter_turns);
    const V y = select(nonzero(q & constant(q, 1u)), c, s);
    const V turned = floats(bits(y) ^ shift_left<30>(q & constant(q, 2u)));
    return select(magnitude(x) > constant(x, kSinMax), floats(constant(q, kNan)), turned);
}
template<class V>
FOVEA_LANES V sin(V x) {
    return sine(x, 0);
}
template<class V>
FOVEA_LANES V cos(V x) {
    return sine(x, 1);
}

// ---- activations ---------------------------------------------------------------------------------------------------

template<class V>
FOVEA_LANES V relu(V x) {
    return select(constant(x, 0.0f) > x, constant(x, 0.0f), x);
}

/// So et al. 2021, section 3.1.
template<class V>
FOVEA_LANES V relu2(V x) {
    const V y = relu(x);
    return y * y;
}

/// Hendrycks and Gimpel 2016; the second is the same paper's approximation.
template<class V>
FOVEA_LANES V gelu(V x) {
    return (constant(x, 0.5f) * x) * (constant(x, 1.0f) + erf(x * constant(x, kSqrtHalf)));
}
template<class V>
FOVEA_LANES V gelu_tanh(V x) {
    const V inner = x * fma(x * x, constant(x, kGeluCubic), constant(x, kGeluLinear));
    return (constant(x, 0.5f) * x) * (constant(x, 1.0f) + tanh(inner));
}

/// Elfwing et al. 2018.
template<class V>
FOVEA_LANES V silu(V x) {
    return x / (constant(x, 1.0f) + exp(-x));
}

/// Hendrycks and Gimpel 2016, section 2: nearly GELU.
template<class V>
FOVEA_LANES V quick_gelu(V x) {
    return x / (constant(x, 1.0f) + exp(x * constant(x, -kSiluSlope)));
}

/// The gate of gpt-oss (OpenAI 2025): x·sigmoid(1.702·x), x clamped to 7; the other factor is clamped to ±7, and 1 is
/// added.
template<class V>
FOVEA_LANES V silu_clamped(V x) {
    const V most = constant(x, kSiluMost);
    return quick_gelu(select(x > most, most, x));
}
template<class V>
FOVEA_LANES V clamped_factor(V x) {
    const V most = constant(x, kSiluMost), least = constant(x, -kSiluMost), c = select(x > most, most, x);
    return select(least > c, least, c) + constant(x, 1.0f);
}

template<class V>
FOVEA_LANES V sigmoid(V x) {
    return constant(x, 1.0f) / (constant(x, 1.0f) + exp(-x));
}

/// Dugas et al. 2001, section 3: max(x, 0) + log(1 + e^−|x|).
template<class V>
FOVEA_LANES V softplus(V x) {
    const V u = exp<true>(-magnitude(x));
    return fma(u, polynomial(u, kLog1p), relu(x));
}

template<class V>
FOVEA_LANES V softcap(V x, V cap) {
    return cap * tanh(x / cap);
}

template<class V>
FOVEA_LANES V activate(Activation activation, V x) {
    switch (activation) {
        case Activation::none: return x;
        case Activation::relu: return relu(x);
        case Activation::gelu: return gelu(x);
        case Activation::gelu_tanh: return gelu_tanh(x);
        case Activation::silu: return silu(x);
        case Activation::tanh: return tanh(x);
        case Activation::silu_clamped:
            if constexpr (has(Part::experts)) return silu_clamped(x);
            break;
        case Activation::relu2:
            if constexpr (has(Part::block_variants)) return relu2(x);
            break;
        case Activation::quick_gelu:
            if constexpr (has(Part::block_variants)) return quick_gelu(x);
            break;
        case Activation::sigmoid:
            if constexpr (has(Part::block_variants)) return sigmoid(x);
            break;
        case Activation::softplus:
            if constexpr (has(Part::block_variants)) return softplus(x);
    }
    return x;
}

/// The factor that a gated part's activation multiplies; `x` is what `up` makes.
template<class V>
FOVEA_LANES V gated_factor(Activation activation, V x) {
    return has(Part::experts) && activation == Activation::silu_clamped ? clamped_factor(x) : x;
}

/// The function of a place in FloatKernels::unary.
template<class V>
FOVEA_LANES V apply(Unary function, V x) {
    switch (function) {
        case Unary::exp: return exp(x);
        case Unary::tanh: return tanh(x);
        case Unary::erf: return erf(x);
        case Unary::sin: return sin(x);
        case Unary::cos: return cos(x);
    }
    return activate(activation_of(function), x);
}

}  // namespace
}  // namespace fovea
