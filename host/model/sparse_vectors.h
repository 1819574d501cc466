// Sparse vectors of texts, by what a head makes of their rows.
#pragma once
#include <span>
#include <vector>

#include "fovea/host/opened.h"
#include "fovea/host/texts.h"

namespace fovea {

/// rows: [ids][width] of the model's head. If the width is 1, they are the ids' own weights, of which the largest of an id counts, and
/// those of special tokens do not (Chen et al. 2024, BGE M3, section 3.2). Else each column is a token's logit, and its weight is
/// log(1 + max(0, l)) of the largest one l (Formal et al. 2021, SPLADE v2, eq. 6), or the logarithm of 1 and that again.
[[nodiscard]] std::vector<TokenWeight> sparse_vector(const host::Opened& opened, std::span<const Token> ids,
                                                     std::span<const float> rows);

}  // namespace fovea
