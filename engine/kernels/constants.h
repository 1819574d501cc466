// exp, tanh, erf, sine, cosine and the activations, exactly: constants, and the order of every operation.
//
// Each line below is one float32 operation per arithmetic sign, rounded to nearest even; fma(a, b, c) = a·b + c is
// rounded once; select(condition, a, b) takes a where the condition holds, and a comparison with NaN does not. bits()
// and float_of() reinterpret; << and + on bits are modulo 2³². Nothing else is used, so scalar.cpp and every simd table
// give the same bits. Coefficients are from tests/golden/make_math.py; docs/numerics.md states each function's error.
// A change here changes results: raise kNumericsVersion.
//
//   exp(x): x = n·ln 2 + r, e^x = 2^n·e^r (Cody and Waite 1980).
//     c = select(x > kExpMax, kExpMax, x)
//     t = fma(c, kLog2E, kRound)                  the low bits of t are n, rounded to nearest
//     n = t − kRound
//     r = fma(n, −kLn2Low, fma(n, −kLn2High, c))
//     p = kExp4;  p = fma(p, r, kExp3);  p = fma(p, r, kExp2);  p = fma(p, r, kExp1);  p = fma(p, r, kExp0);
//     p = fma(p, r, 1);  p = fma(p, r, 1)
//     y = p·float_of((bits(t) << 23) + kExpBias)  times 2^(n−1), so that 2^128 is never needed
//     y = y·2
//     result = select(x < kExpMin, 0, y)
//
//   tanh(x):
//     a = float_of(bits(x) & 0x7fffffff)
//     z = a·a
//     p = kTanh4;  p = fma(p, z, kTanh3);  ...;  p = fma(p, z, kTanh0)
//     small = fma(a·z, p, a)
//     large = 1 − 2 / (exp(a + a) + 1)
//     y = select(a < kTanhSmall, small, large)
//     result = float_of(bits(y) | (bits(x) & 0x80000000))
//
//   erf(x): the small branch is a series in x², the large one 1 − e^q with q near log(erfc(a)).
//     a = float_of(bits(x) & 0x7fffffff)
//     z = a·a
//     p = kErf5;  p = fma(p, z, kErf4);  ...;  p = fma(p, z, kErf0)
//     small = fma(a, p, a)
//     c = select(a > kErfMax, kErfMax, a)
//     q = kErfc6;  q = fma(q, c, kErfc5);  ...;  q = fma(q, c, kErfc0)
//     large = 1 − exp(q)
//     y = select(a < kErfSmall, small, large)
//     result = float_of(bits(y) | (bits(x) & 0x80000000))
//
//   sin(x), cos(x): x = n·π/2 + r, with π/2 in three parts.
//     t = fma(x, kTwoOverPi, kRound)
//     n = t − kRound
//     r = fma(n, −kHalfPi0, x);  r = fma(n, −kHalfPi1, r);  r = fma(n, −kHalfPi2, r)
//     z = r·r
//     s = fma(kSin2, z, kSin1);  s = fma(s, z, kSin0);  s = fma(r·z, s, r)
//     c = fma(kCos2, z, kCos1);  c = fma(c, z, kCos0);  c = fma(z·z, c, fma(z, −0.5, 1))
//     q = bits(t) for sin, bits(t) + 1 for cos
//     y = select(q & 1, c, s)
//     y = float_of(bits(y) ^ ((q & 2) << 30))
//     result = select(float_of(bits(x) & 0x7fffffff) > kSinMax, NaN, y)
//
//   gelu(x)      = (0.5·x)·(1 + erf(x·kSqrtHalf))                          (Hendrycks and Gimpel 2016)
//   gelu_tanh(x) = (0.5·x)·(1 + tanh(x·fma(x·x, kGeluCubic, kGeluLinear))) (the same paper's approximation)
//   silu(x)      = x / (1 + exp(−x)), −x by flipping the sign bit          (Elfwing et al. 2018)
//   relu(x)      = select(0 > x, 0, x)
//   softcap(x)   = cap·tanh(x / cap)
#pragma once
#include <cstdint>

namespace fovea {

inline constexpr float kRound = 0x1.8p+23f;  // 1.5·2²³: adding it rounds |x| < 2²² to an integer, in the low bits

inline constexpr float kQuantMin = 0x1p-100f;  // a group whose magnitudes are all below is quantized as zeros

inline constexpr float kExpMin = -80.0f;  // below: 0, well above where float32 underflows
inline constexpr float kExpMax = 89.0f;   // e^89 > 2^128: infinity
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e430p-1f;
inline constexpr float kLn2Low = -0x1.05c610p-29f;
inline constexpr std::uint32_t kExpBias = 126u << 23;
// (e^r − 1 − r) / r² for |r| <= ln 2 / 2
inline constexpr float kExp0 = 0x1.fffffcp-2f;
inline constexpr float kExp1 = 0x1.555492p-3f;
inline constexpr float kExp2 = 0x1.5558acp-5f;
inline constexpr float kExp3 = 0x1.12397cp-7f;
inline constexpr float kExp4 = 0x1.6a518cp-10f;

// (tanh(a)/a − 1) / a² as a polynomial in a² for a < kTanhSmall
inline constexpr float kTanhSmall = 0.625f;
inline constexpr float kTanh0 = -0x1.555532p-2f;
inline constexpr float kTanh1 = 0x1.1106fcp-3f;
inline constexpr float kTanh2 = -0x1.b836f4p-5f;
inline constexpr float kTanh3 = 0x1.5203f4p-6f;
inline constexpr float kTanh4 = -0x1.7547e2p-8f;

// erf(a)/a − 1 as a polynomial in a² for a < kErfSmall
inline constexpr float kErfSmall = 0.921875f;
inline constexpr float kErf0 = 0x1.06eba6p-3f;
inline constexpr float kErf1 = -0x1.8126e8p-2f;
inline constexpr float kErf2 = 0x1.ce1ab4p-4f;
inline constexpr float kErf3 = -0x1.b68e66p-6f;
inline constexpr float kErf4 = 0x1.474a0ep-8f;
inline constexpr float kErf5 = -0x1.3a48e2p-11f;
// log(erfc(a)) as a polynomial in a for kErfSmall <= a <= kErfMax, from where erf rounds to 1
inline constexpr float kErfMax = 4.0f;
inline constexpr float kErfc0 = -0x1.a0615ap-13f;
inline constexpr float kErfc1 = -0x1.20ae92p+0f;
inline constexpr float kErfc2 = -0x1.463f62p-1f;
inline constexpr float kErfc3 = -0x1.a9a1b0p-4f;
inline constexpr float kErfc4 = 0x1.6c06dap-6f;
inline constexpr float kErfc5 = -0x1.8e9a44p-9f;
inline constexpr float kErfc6 = 0x1.9a75e4p-13f;

inline constexpr float kSinMax = 0x1p+22f;  // radians; beyond, n would not fit kRound's low bits
inline constexpr float kTwoOverPi = 0x1.45f306p-1f;
inline constexpr float kHalfPi0 = 0x1.921fb6p+0f;
inline constexpr float kHalfPi1 = -0x1.777a5cp-25f;
inline constexpr float kHalfPi2 = -0x1.ee59dap-50f;
// (sin(r)/r − 1) / r² and (cos(r) − 1 + r²/2) / r⁴ as polynomials in r² for |r| <= π/4
inline constexpr float kSin0 = -0x1.555546p-3f;
inline constexpr float kSin1 = 0x1.110778p-7f;
inline constexpr float kSin2 = -0x1.9953fep-13f;
inline constexpr float kCos0 = 0x1.55554ap-5f;
inline constexpr float kCos1 = -0x1.6c0c2ap-10f;
inline constexpr float kCos2 = 0x1.99e90ep-16f;

inline constexpr float kSqrtHalf = 0x1.6a09e6p-1f;    // sqrt(1/2)
inline constexpr float kGeluLinear = 0x1.988454p-1f;  // sqrt(2/π)
inline constexpr float kGeluCubic = 0x1.2444f2p-5f;   // 0.044715·sqrt(2/π)

}  // namespace fovea
