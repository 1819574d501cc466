// The constants of exp, tanh, erf, sine, cosine and the activations. math.h says what is done with them, operation by
// operation. Coefficients ascend, and are from tests/golden/make_math.py; docs/numerics.md states each function's error.
// A change here changes results: raise kNumericsVersion.
#pragma once
#include <cstdint>

namespace fovea {

constexpr std::uint32_t kNan = 0x7fc00000u;  // the bits of the one NaN that is stored
constexpr float kRound = 0x1.8p+23f;         // 1.5·2²³: adding it rounds |x| < 2²² to an integer, in the low bits

constexpr float kQuantMin = 0x1p-100f;  // a group whose magnitudes are all below is quantized as zeros

constexpr float kExpMin = -80.0f;  // below: 0, well above where float32 underflows
constexpr float kExpMax = 89.0f;   // e^89 > 2^128: infinity
constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2High = 0x1.62e430p-1f, kLn2Low = -0x1.05c610p-29f;
constexpr float kExpRound = kRound + 126.0f;  // of a sum with it the low bits are the exponent of 2^(n − 1)
// e^r for |r| <= ln 2 / 2
constexpr float kExp[] = {1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558acp-5f, 0x1.12397cp-7f, 0x1.6a518cp-10f};

// (tanh(a)/a − 1) / a² as a polynomial in a² for a < kTanhSmall
constexpr float kTanhSmall = 0.625f;
constexpr float kTanh[] = {-0x1.555532p-2f, 0x1.1106fcp-3f, -0x1.b836f4p-5f, 0x1.5203f4p-6f, -0x1.7547e2p-8f};

// erf(a)/a − 1 as a polynomial in a² for a < kErfSmall
constexpr float kErfSmall = 0.921875f;
constexpr float kErf[] = {0x1.06eba6p-3f,  -0x1.8126e8p-2f, 0x1.ce1ab4p-4f,
                          -0x1.b68e66p-6f, 0x1.474a0ep-8f,  -0x1.3a48e2p-11f};
// log(erfc(a)) as a polynomial in a for kErfSmall <= a <= kErfMax, from where erf rounds to 1
constexpr float kErfMax = 4.0f;
constexpr float kErfc[] = {-0x1.a0615ap-13f, -0x1.20ae92p+0f, -0x1.463f62p-1f, -0x1.a9a1b0p-4f,
                           0x1.6c06dap-6f,   -0x1.8e9a44p-9f, 0x1.9a75e4p-13f};

// log(1 + u) / u for 0 <= u <= 1
constexpr float kLog1p[] = {1.0f,           -0x1.ffffd2p-2f, 0x1.554dd8p-2f, -0x1.ff2518p-3f,
                            0x1.9353f2p-3f, -0x1.3a62aap-3f, 0x1.b52c4ap-4f, -0x1.d7cf8ep-5f,
                            0x1.4a6fd6p-6f, -0x1.b1ee3ep-9f};

constexpr float kSinMax = 0x1p+22f;  // radians; beyond, n would not fit kRound's low bits
constexpr float kTwoOverPi = 0x1.45f306p-1f;
constexpr float kHalfPi[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};  // in three parts
// (sin(r)/r − 1) / r² and (cos(r) − 1 + r²/2) / r⁴ as polynomials in r² for |r| <= π/4
constexpr float kSin[] = {-0x1.555546p-3f, 0x1.110778p-7f, -0x1.9953fep-13f};
constexpr float kCos[] = {0x1.55554ap-5f, -0x1.6c0c2ap-10f, 0x1.99e90ep-16f};

constexpr float kSiluMost = 7.0f;             // silu_clamped: where gate and other factor end
constexpr float kSiluSlope = 0x1.b3b646p+0f;  // 1.702, with which x·sigmoid(1.702·x) is nearly GELU

constexpr float kSqrtHalf = 0x1.6a09e6p-1f;    // sqrt(1/2)
constexpr float kGeluLinear = 0x1.988454p-1f;  // sqrt(2/π)
constexpr float kGeluCubic = 0x1.2444f2p-5f;   // 0.044715·sqrt(2/π)

}  // namespace fovea
