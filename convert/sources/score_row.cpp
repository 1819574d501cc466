#include "convert/sources/score_row.h"

namespace fovea {

std::vector<float> score_row(const TensorView& head, const ScoredTokens& tokens, float scale, std::uint32_t n_cols) {
    std::vector<float> row(n_cols), other(n_cols);
    read_row(head, tokens.yes, n_cols, row.data());
    if (tokens.no) read_row(head, *tokens.no, n_cols, other.data());
    for (std::uint32_t i = 0; i < n_cols; ++i) row[i] = (row[i] - other[i]) * scale;
    return row;
}

}  // namespace fovea
