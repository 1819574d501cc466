// Masks as the kernels read them: one number per position of a tile, which is added to the score.
#pragma once
#include "engine/kernels/kernels.h"

namespace fovea {
namespace {

/// bias [kTile]: the sum of a row's masks for each position from `begin` on, in their order; −inf if one of them
/// hides the position. Plain loops, which the compiler turns into each instruction set's own.
inline void sum_masks(const MaskRow* masks, std::uint32_t begin, float* bias) {
    constexpr float kHidden = -__builtin_huge_valf();
    for (std::uint32_t i = 0; i < kTile; ++i) bias[i] = 0.0f;
    for (const MaskRow* mask = masks; mask < masks + kMasks; ++mask) {
        const auto clip = [&](std::uint32_t end) {
            return end < begin ? 0 : end - begin < kTile ? end - begin : kTile;
        };
        const std::uint32_t end = clip(mask->end), n = clip(mask->n_keys < mask->end ? mask->n_keys : mask->end);
        if (mask->hidden)
            for (std::uint32_t i = 0; i < n; ++i) bias[i] = mask->hidden[begin + i] ? kHidden : bias[i];
        if (mask->added)
            for (std::uint32_t i = 0; i < n; ++i) {
                const float x = mask->added[begin + i];
                bias[i] = bias[i] == kHidden || x == kHidden ? kHidden : bias[i] + x;
            }
        for (std::uint32_t i = n; i < end; ++i) bias[i] = kHidden;
    }
}

}  // namespace
}  // namespace fovea
