#include "convert/sources/latent_rows.h"

#include <algorithm>
#include <atomic>

#include "convert/sources/lora.h"
#include "convert/sources/lora_file.h"
#include "host/base/error.h"

namespace fovea {
namespace {

/// Columns of a head's rows, which only come whole: each thread keeps the last head that it made.
struct TurnedHead {
    std::function<void(std::uint64_t, float*)> row_of_all;
    std::uint64_t first;
    std::uint32_t n_rows, n_cols;
    std::uint64_t id;

    void operator()(std::uint64_t column, float* out) const {
        thread_local std::uint64_t kept = 0;
        thread_local std::vector<float> rows;
        if (kept != id) {
            rows.resize(std::size_t{n_rows} * n_cols);
            for (std::uint32_t i = 0; i < n_rows; ++i) row_of_all(first + i, rows.data() + std::size_t{i} * n_cols);
            kept = id;
        }
        for (std::uint32_t i = 0; i < n_rows; ++i) out[i] = rows[std::size_t{i} * n_cols + column];
    }
};

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> n_made{0};
    return ++n_made;
}

/// A head of a tensor that is not plain floats: its rows are computed.
TensorView computed_head(const TensorView& all, std::uint64_t first, const Block& block, bool is_key) {
    TensorView head = all;
    if (is_key) {
        head.dequantize =
            TurnedHead{all.dequantize, first, block.latent.query_dim, block.attention.value_head_dim, next_id()};
        head.groups = {};
        return head;
    }
    head.dequantize = [of = all.dequantize, first](std::uint64_t row, float* out) { of(first + row, out); };
    if (all.groups) head.groups = [of = all.groups, first](std::uint64_t row, auto* out) { of(first + row, out); };
    return head;
}

/// The second factor of a head's keys transposed, as rows.
TensorView key_factor(const LowRank* product, const Block& block, std::uint32_t head) {
    const std::uint32_t n_key = block.latent.query_dim, n_all = n_key + block.latent.value_dim;
    LowRank own = product ? *product : LowRank{};
    if (product) own.left.data += std::uint64_t{head} * n_all * own.left.stride * (own.left.type == Type::f32 ? 4 : 2);
    TensorView view;
    view.dequantize = [own, n_key](std::uint64_t k, float* out) {
        std::fill_n(out, n_key, 0.0f);
        if (k < own.rank) read_factor(own.left, k, false, n_key, out);
    };
    return view;
}

/// The first factor, transposed, times the scale.
TensorView query_factor(const LowRank* product, std::uint32_t rank) {
    if (!product) return second_view(nullptr, rank, 0);
    LowRank turned = *product;
    turned.left = product->right;
    return second_view(&turned, rank, 0);
}

}  // namespace

TensorView latent_head(const TensorView& all, const Block& block, bool is_key, std::uint32_t head) {
    const std::uint32_t n_key = block.latent.query_dim, n_all = n_key + block.latent.value_dim;
    const std::uint64_t first = std::uint64_t{head} * n_all + (is_key ? 0 : n_key);
    if (all.dequantize) return computed_head(all, first, block, is_key);
    TensorView view = all;
    view.data += first * block.attention.value_head_dim * (all.type == Type::f32 ? 4 : 2);
    if (is_key) std::swap(view.row_stride, view.col_stride);
    return view;
}

void add_latent_factor(const TensorSpec& spec, const Stack& stack, const LowRank* product, MappedWeights& weights) {
    const Block& b = stack.block(spec.layer);
    const std::uint32_t rank = stack.adapter_rank;
    const std::uint64_t n_rows = std::uint64_t{b.attention.n_heads} * (b.latent.query_dim + b.latent.value_dim);
    if (product && (product->n_rows != n_rows || product->n_cols != b.attention.value_head_dim))
        throw host::Error(product->name + ": expected a product of " + std::to_string(n_rows) + " rows and " +
                          std::to_string(b.attention.value_head_dim) + " columns, got " +
                          std::to_string(product->n_rows) + " and " + std::to_string(product->n_cols));
    const LowRank* const both[] = {product, product};
    const auto key = [&](std::uint32_t head, bool) { return key_factor(product, b, head); };
    const auto value = [&](std::uint32_t head, bool) {  // as it is, times the scale
        const std::uint64_t n_all = std::uint64_t{b.latent.query_dim} + b.latent.value_dim;
        return second_view(product, rank, head * n_all + b.latent.query_dim);
    };
    switch (spec.role) {
        case Role::adapter_latent_query_in: return weights.add_each(spec, b.attention.n_heads, rank, false, key);
        case Role::adapter_latent_query_out: return weights.add(spec, query_factor(product, rank));
        case Role::adapter_latent_value_in:
            return weights.add(spec, first_view(both, rank, false, b.attention.value_head_dim));
        default: return weights.add_each(spec, b.attention.n_heads, b.latent.value_dim, false, value);
    }
}

}  // namespace fovea
