// The row by which a score is made of the last row of a text, where logits of one token or two make it.
#pragma once
#include <vector>

#include "convert/families/family.h"
#include "convert/weights/mapped_weights.h"

namespace fovea {

/// [n_cols]: of the output head's rows that of `yes`, less that of `no`, times `scale`: its product is what the logits' would be.
[[nodiscard]] std::vector<float> score_row(const TensorView& head, const ScoredTokens& tokens, float scale,
                                           std::uint32_t n_cols);

}  // namespace fovea
