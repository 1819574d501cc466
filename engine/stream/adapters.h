// Adapters' products, beside those of the model's matrices: y = W·x + bias, then + out·(scale·(in·x)) of one adapter after the
// other. Each is two matrices of floats, so quantized models have float operands for them.
#pragma once
#include <span>

#include "engine/pass/pass.h"

namespace fovea {

inline constexpr std::uint32_t kMostAdapters = 64;  // in use at a time: a C caller's are read to the stack

/// An adapter in use, as the arena keeps it.
struct AdapterUse {
    const std::byte* file = nullptr;
    float scale = 1.0f;
};
static_assert(sizeof(AdapterUse) <= kAdapterUseBytes);

/// Number i of those in use, and its tensors of the pass's layer.
[[nodiscard]] const AdapterUse& adapter_use(const Pass& pass, std::uint32_t i) noexcept;
[[nodiscard]] const AdapterTensors& adapter_tensors(const Pass& pass, std::uint32_t i) noexcept;

/// Whether one in use has a product for that matrix of the pass's layer.
[[nodiscard]] bool has_product(const Pass& pass, Adapted matrix) noexcept;
[[nodiscard]] inline bool is_adapted(const Pass& pass, Adapted matrix) noexcept {
    return has(Part::adapters) && has_product(pass, matrix);
}

/// Adds the products for up to three matrices that read the same rows: norm(rows) [n_rows][width].
void add_products(Pass& pass, std::span<const AdaptedProduct> products, const ConstRows& rows, std::uint32_t n_rows,
                  std::uint32_t width, const NormWeights& norm) noexcept;
inline void add_adapters(Pass& pass, std::span<const AdaptedProduct> products, const ConstRows& rows,
                         std::uint32_t n_rows, std::uint32_t width, const NormWeights& norm) noexcept {
    if (has(Part::adapters)) add_products(pass, products, rows, n_rows, width, norm);
}

/// The same for a block's attention_output or down, whose rows are the pass's. out [seq_len][d_model]; none: nothing.
void add_adapted(Pass& pass, const Block& block, Adapted matrix, const Rows& out) noexcept;

/// inner = act(W_up · norm(x)), gated or not, where adapters add to W_up · norm(x): the activation is a phase of its own.
void compute_adapted_inner(Pass& pass, const FeedForwardTensors& t, const Block& block,
                           const NormWeights& norm) noexcept;

}  // namespace fovea
