// Tables of tokens of another width than the model's, which a source maps to that width behind each look-up, or from it before its
// output.
#pragma once
#include <cstdint>

#include "convert/weights/mapped_weights.h"

namespace fovea {

/// A table's rows [n_inner] through a matrix, [n_cols] each. The matrix is [n_cols, n_inner], what a row is multiplied by; or,
/// `transposed`, [n_inner, n_cols], what an output's input is multiplied by before the table's rows. Sums are of doubles, by
/// ascending inner column, and rounded to float once.
[[nodiscard]] TensorView mapped_table(const TensorView& table, const TensorView& matrix, std::uint32_t n_inner,
                                      std::uint32_t n_cols, bool transposed);

}  // namespace fovea
