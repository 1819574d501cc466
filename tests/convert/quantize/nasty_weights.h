// Weights as they are and as they should not be.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/format/format.h"

namespace fovea::testing {

inline constexpr float kNanFloat = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Numbers whose sum of three uniform parts is nearly normal, as weights are.
struct Weights {
    std::uint32_t state;
    float next() {
        float sum = 0;
        for (int i = 0; i < 3; ++i) {
            state = state * 1664525u + 1013904223u;
            sum += static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
        }
        return sum;
    }
    void fill(float (&x)[kGroup], float size = 1.0f) {
        for (float& value : x) value = next() * size;
    }
};

/// A weight of one of sixteen kinds: zeros, ties, infinities, NaNs, subnormals, any bits, far apart, few values, or as
/// usual.
inline float nasty_weight(std::uint32_t kind, float size, Weights& weights) {
    const float usual = weights.next() * size;
    const std::uint32_t bits = weights.state, small = bits >> 20;
    switch (kind) {
        case 0: return 0.0f;
        case 1:
            return static_cast<float>(static_cast<int>(small % 33) - 16) * 0.5f * size;  // halves of an eighth: ties
        case 2: return static_cast<float>(static_cast<int>(small % 41) - 20) * 0.25f * size;
        case 3: return small % 40 ? usual : small % 80 ? kInfinity : -kInfinity;
        case 4: return small % 40 ? usual : kNanFloat;
        case 5: return static_cast<float>(small % 100) * 0x1p-149f;
        case 6: return std::bit_cast<float>(bits);
        case 7: return small % 2 ? 0.0f : usual;
        case 8: return small % 2 ? size : -size;
        case 9: return std::bit_cast<float>((bits & 0x80000000u) | (small % 60 + 90) << 23 | bits % 4);
        case 10: return usual * 1e-30f;
        case 11: return -0.0f;
        default: return usual;
    }
}

}  // namespace fovea::testing
