// Types of stored numbers, and the functions between a feed-forward part's matrices: all that kernels know of a model.
#pragma once
#include <cstdint>

namespace fovea {

/// How an element of a weight matrix or of a key-value cache is stored. The numbers stand in the file.
/// Types from q8 on are quantized, see docs/format.md. All but q8_128 hold what GGUF's types of these names hold; q8,
/// q4 and q5 what Q8_0, Q4_0 and Q5_0 do.
enum class Type : std::uint8_t {
    f32 = 0,
    f16 = 1,
    bf16 = 2,
    q8 = 3,
    q4 = 4,
    q6_k = 5,
    q5_k = 6,
    q4_k = 7,
    iq4_nl = 8,
    mxfp4 = 9,
    q3_k = 10,
    q2_k = 11,
    iq4_xs = 12,
    tq2_0 = 13,   ///< −1, 0 or 1 times a scale
    q8_128 = 14,  ///< q8 in broad groups: 128 columns of weights, and of what they multiply, share a scale
    q5 = 15,
    q4_1 = 16,
    q5_1 = 17,
};
inline constexpr int kTypeCount = 18;
inline constexpr Type kTypes[kTypeCount] = {
    Type::f32,   Type::f16,  Type::bf16, Type::q8,     Type::q4,    Type::q6_k,   Type::q5_k, Type::q4_k, Type::iq4_nl,
    Type::mxfp4, Type::q3_k, Type::q2_k, Type::iq4_xs, Type::tq2_0, Type::q8_128, Type::q5,   Type::q4_1, Type::q5_1};

enum class Activation : std::uint8_t {
    none = 0,
    relu = 1,
    gelu = 2,
    gelu_tanh = 3,
    silu = 4,
    tanh = 5,
    silu_clamped = 6,  ///< if gated, the other factor is clamped too, and 1 added to it (OpenAI 2025)
    relu2 = 7,
    quick_gelu = 8,
    sigmoid = 9,
    softplus = 10,  ///< log(1 + e^x)
};
inline constexpr int kActivationCount = 11;

}  // namespace fovea
