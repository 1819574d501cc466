#include "engine/stream/adapters.h"

#include "engine/kernels/scalar/math.h"

#include "engine/kernels/math.h"

namespace fovea {
namespace {

/// An adapter's two matrices for one of the model's; `in` has no place in the file where there is none.
struct AdapterFactors {
    Matrix in, out;
};

[[nodiscard]] AdapterFactors factors(const AdapterTensors& t, Adapted matrix) noexcept {
    switch (matrix) {
        case Adapted::query: return {t.query_in, t.query_out};
        case Adapted::key: return {t.key_in, t.key_out};
        case Adapted::value: return {t.value_in, t.value_out};
        case Adapted::attention_output: return {t.output_in, t.output_out};
        case Adapted::up: return {t.up_in, t.up_out};
        case Adapted::down: return {t.down_in, t.down_out};
        case Adapted::query_down: return {t.query_down_in, t.query_down_out};
        case Adapted::latent:  // see latent.cpp
        case Adapted::none: break;
    }
    return {};
}

[[nodiscard]] AdapterFactors factors_of(const Pass& pass, std::uint32_t i, Adapted matrix) noexcept {
    return factors(adapter_tensors(pass, i), matrix);
}

/// One panel of the inner layer: of a gated part act(gate)·up, from panels of both in turn.
void activate(const Pass& pass, const Block& block, const float* raw, std::uint32_t n, float* out) noexcept {
    switch (block.feed.activation) {
        case Activation::none:
            for (std::uint32_t i = 0; i < n; ++i) out[i] = raw[i];
            break;
        case Activation::relu:
            for (std::uint32_t i = 0; i < n; ++i) out[i] = 0.0f > raw[i] ? 0.0f : raw[i];
            break;
        default: pass.workspace.kernels->floats.unary[static_cast<int>(unary_of(block.feed.activation))](raw, n, out);
    }
    if (!block.feed.gated) return;
    for (std::uint32_t i = 0; i < n; ++i) out[i] = out[i] * gated_factor(block.feed.activation, raw[kLanes + i]);
}

}  // namespace

/// Three products may share an operand; a gated part has two in one, and latent attention one for each head. What they leave
/// is an operand in its turn.
void AdapterTensors::plan(const Planning& p) noexcept {
    if (!p.limits.max_adapters) return;
    const std::uint64_t rank = p.limits.max_adapter_rank;
    grow_to(p.map.low_stride, 3 * pad(rank));
    grow_to(p.widest.operand, 2 * rank);
    for (const Block& b : p.stack.used_blocks()) {
        if (!b.experts.n) grow_to(p.map.raw_stride, pad(up_rows(b)));
        if (!has(Part::latent) || !b.latent.query_dim) continue;
        grow_to(p.map.low_stride, b.attention.n_heads * pad(rank));  // each head's own
        grow_to(p.widest.operand, b.attention.n_heads * rank);
    }
}

const AdapterUse& adapter_use(const Pass& pass, std::uint32_t i) noexcept {
    const WorkspaceState& w = pass.workspace;
    return *reinterpret_cast<const AdapterUse*>(w.arena + w.map.adapter_uses + i * kAdapterUseBytes);
}

const AdapterTensors& adapter_tensors(const Pass& pass, std::uint32_t i) noexcept {
    const WorkspaceState& w = pass.workspace;
    return pass.of_layer(w.adapters() + i * n_layers_of(w.model.config()));
}

bool has_product(const Pass& pass, Adapted matrix) noexcept {
    for (std::uint32_t i = 0; i < pass.workspace.n_adapters; ++i)
        if (factors_of(pass, i, matrix).in.offset) return true;
    return false;
}

void add_products(Pass& pass, std::span<const AdaptedProduct> products, const ConstRows& rows, std::uint32_t n_rows,
                  std::uint32_t width, const NormWeights& norm) noexcept {
    const WorkspaceState& w = pass.workspace;
    const Rows low = pass.rows(w.map.low, w.map.low_stride);
    for (std::uint32_t i = 0; i < w.n_adapters; ++i) {
        const AdapterUse& use = adapter_use(pass, i);
        Linear in[3], out[3];
        std::uint32_t n = 0, n_low = 0;
        for (const AdaptedProduct& product : products) {
            const AdapterFactors f = factors_of(pass, i, product.matrix);
            if (!f.in.offset) continue;
            in[n] = {.matrix = f.in, .out = {low.data + n_low, low.stride}, .n_stored = f.in.n_rows, .file = use.file};
            out[n] = {.matrix = f.out,
                      .out = product.out,
                      .n_stored = product.n_stored,
                      .epilogue = Epilogue::add,
                      .file = use.file};
            n_low += f.in.n_panels() * kLanes;
            ++n;
        }
        if (!n) continue;
        const void* operand = pass.operand(Type::f32, rows, n_rows, width, norm);
        // Each of several ranks makes all of it: heads need columns that are not its share of panels.
        pass.multiply_here("adapter", {in, n}, operand, n_rows);
        if (use.scale != 1.0f)
            pass.phase("adapter", {}, in_parts(n_rows), [&](Pass::Share mine) {
                for (std::uint32_t row = mine.begin; row < mine.end; ++row)
                    for (std::uint32_t j = 0; j < n_low; ++j) low[row][j] = low[row][j] * use.scale;
            });
        for (std::uint32_t k = 0; k < n; ++k) {
            operand = pass.operand(Type::f32, in[k].out, n_rows, in[k].n_stored);
            pass.multiply_here("adapter", {&out[k], 1}, operand, n_rows);
        }
    }
}

void add_adapted(Pass& pass, const Block& block, Adapted matrix, const Rows& out) noexcept {
    const bool down = matrix == Adapted::down;
    const bool in_inner = down || (has(Part::latent) && block.latent.query_dim);  // see Latent::map_values
    const AdaptedProduct product{matrix, out, pass.stack().d_model};
    add_adapters(pass, {&product, 1}, in_inner ? pass.inner() : pass.attended(), pass.seq_len,
                 down ? block.feed.d_ff : block.attention.n_heads * merged_head_dim(block), {});
}

void compute_adapted_inner(Pass& pass, const FeedForwardTensors& t, const Block& block,
                           const NormWeights& norm) noexcept {
    if (!has(Part::adapters)) return;
    const std::uint32_t d_model = pass.stack().d_model;
    const Rows raw = pass.rows(pass.workspace.map.raw, pass.workspace.map.raw_stride);
    const Linear up{.matrix = t.up, .bias = t.up_bias, .out = raw, .n_stored = t.up.n_rows};
    const void* normed = pass.operand(t.up.type, pass.hidden(), pass.seq_len, d_model,
                                      norm.with(pass.columns(&ColumnTensors::up), t.up));
    pass.multiply("inner", {}, {&up, 1}, normed, pass.seq_len);
    const AdaptedProduct product{Adapted::up, raw, t.up.n_rows};
    add_adapters(pass, {&product, 1}, pass.hidden(), pass.seq_len, d_model, norm);
    pass.phase("inner", pass.all(pass.inner(), block.feed.d_ff), in_parts(pass.seq_len), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row)
            for (std::uint32_t i = 0; i < block.feed.d_ff; i += kLanes)
                activate(pass, block, raw[row] + (block.feed.gated ? 2 * i : i),
                         block.feed.d_ff - i < kLanes ? block.feed.d_ff - i : kLanes, pass.inner()[row] + i);
    });
}

}  // namespace fovea
