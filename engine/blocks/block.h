// The stages of a pass before its results: the stream's start, and each layer's block.
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

}  // namespace fovea
