// What each token gives every layer beside the residual stream, and what a layer does with it behind its other parts.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// Elements of a row of what tokens give each layer of a stack, side by side, or of what they give all.
[[nodiscard]] inline std::uint64_t input_stride(const Stack& s) noexcept {
    for (const Block& b : s.used_blocks())
        if (b.inputs.joins_embedding) return round_up(std::uint64_t{s.d_model}, kLanes);
    return round_up(std::uint64_t{s.n_layers} * s.blocks[0].inputs.width, kLanes);
}

struct LayerInputs {
    /// Every layer's part for each row of the pass, from what `embed` left, or that itself: see InputShape.
    static void make(Pass& pass) noexcept;
    /// inner = [x, e] of every row, see InputShape::joins_embedding.
    static void join(Pass& pass) noexcept;
    /// attended = x + O·y, y being rows of d_model in `projected`.
    static void lead(Pass& pass) noexcept;
    /// Adds the layer's part to the stream, and multiplies the stream by the layer's scale, as far as the block has them.
    static void end(Pass& pass, const Block& block) noexcept;
};

}  // namespace fovea
