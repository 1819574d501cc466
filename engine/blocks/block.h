// The stages of a pass, in their order: the stream's start, each layer's block, the results.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

void embed(Pass& pass) noexcept;                          // position.cpp
void run_block(Pass& pass, const Layer& layer) noexcept;  // block.cpp

/// What relative positions add to the scores of a head's query at `pos` of its sequence, from the first position on; null
/// where the block has none.
[[nodiscard]] const float* relative_scores(const Pass& pass, std::uint32_t block, std::uint32_t head,
                                           std::uint32_t pos) noexcept;  // position.cpp
/// A head's rotation at the position of one row of the pass, in place.
void rotate_head(const Pass& pass, const Layer& layer, std::uint32_t row, float* head) noexcept;  // position.cpp

/// From frames of sound to rows, see convolution.cpp.
struct Hearing {
    /// What `embed` reads, to `hidden`.
    static void convolve(Pass& pass) noexcept;
};

/// What follows the layers, see head.cpp.
struct StackHead {
    /// The logits of the rows that want them.
    static void logits(Pass& pass) noexcept;
    /// What the layers leave, normed, with the stack's head behind it, to pass.out: of each row, or of each sequence.
    static void vectors(Pass& pass) noexcept;
};

}  // namespace fovea
