// What an adapter's own Fovea file has: its products as tensors, and by what it knows its model again.
#pragma once
#include <cstdint>

#include "convert/formats/safetensors.h"
#include "convert/weights/mapped_weights.h"
#include "convert/weights/model_source.h"

namespace fovea {

/// Which of the model's matrices an adapter's second one adds to; none for other roles.
[[nodiscard]] Adapted adapted_by(Role role) noexcept;
/// The reverse.
[[nodiscard]] Role adapted_role(Adapted matrix) noexcept;
/// Columns of that matrix of a layer.
[[nodiscard]] std::uint32_t n_inputs(const Stack& stack, Adapted matrix, std::uint32_t layer) noexcept;

/// Rows of a product's first matrix, or of a gate's over those of an up's, each with zeros up to the rank; null: zeros.
[[nodiscard]] TensorView first_view(const LowRank* const (&products)[2], std::uint32_t rank, bool gated,
                                    std::uint32_t n_cols);
/// Rows of the second, from the product's row `first` on, times its scale, with zeros up to the rank; null: zeros.
[[nodiscard]] TensorView second_view(const LowRank* product, std::uint32_t rank, std::uint64_t first);
/// Gives a gate (its `at` is 0) or an up zeros in the other's columns: both lie side by side.
void widen_product(TensorView& view, std::uint32_t rank, std::uint32_t at);

/// What Stack::adapter_base is for that model.
[[nodiscard]] std::uint32_t vectors_checksum(const ModelSource& model);

}  // namespace fovea
