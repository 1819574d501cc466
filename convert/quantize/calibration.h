// Statistics of a text in a model: for each matrix, the directions of its input that matter, and how much. Rounding
// that knows them loses less of the matrix's outputs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/format/format.h"
#include "fovea/config.h"

namespace fovea {

/// Σ x·xᵀ over the inputs x of a matrix, and, once factored, its Cholesky factor L, Σ x·xᵀ + damping = L·Lᵀ. The lower
/// triangle, row after row.
struct InputMoments {
    std::uint32_t n = 0;       ///< columns of the matrix
    std::vector<float> lower;  ///< [n·(n + 1)/2]

    [[nodiscard]] float* row(std::uint32_t i) noexcept { return lower.data() + std::size_t{i} * (i + 1) / 2; }
    [[nodiscard]] const float* row(std::uint32_t i) const noexcept {
        return lower.data() + std::size_t{i} * (i + 1) / 2;
    }
};

/// Which matrices share an input.
enum class InputOf : std::uint8_t { projections, attention_output, up, down };
inline constexpr std::uint32_t kInputCount = 4;

/// The factored moments of every matrix of a stack's layers, and what their inputs' columns are multiplied by.
struct Calibration {
    StackIndex stack = StackIndex::decoder;
    std::uint64_t n_tokens = 0;               ///< read
    std::vector<InputMoments> moments;        ///< [n_layers][kInputCount], of inputs that are multiplied already
    std::vector<std::vector<float>> columns;  ///< [n_layers][kInputCount][columns] column scales; empty: none
    std::vector<float> head_columns;          ///< the same of the output head's input; 0 or 1 each
    Role head = Role::output;                 ///< the matrix that reads that input

    /// The moments of a tensor's inputs; null if they were not looked at: embeddings, output heads, vectors.
    [[nodiscard]] const InputMoments* of(const TensorSpec& spec) const noexcept;
    /// The column scales of a matrix's input, or of a tensor whose role is column scales; null: it has none.
    [[nodiscard]] const float* columns_of(const TensorSpec& spec) const noexcept;

    /// Outlier columns of a matrix, see engine/format/panel.h: those whose scale is 0.
    [[nodiscard]] std::vector<std::uint32_t> outliers_of(const TensorSpec& spec) const;

private:
    /// Where that input is in both lists; their length if it is in none.
    [[nodiscard]] std::size_t number_of(const TensorSpec& spec) const noexcept;
};

/// Rows of a matrix as stored: divided by its input's scales, if it has any, except its outlier columns. Exact.
void divide_columns(const Calibration* calibration, const TensorSpec& spec, std::uint32_t n_rows, float* rows) noexcept;

}  // namespace fovea
