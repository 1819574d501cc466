// The phases that every part of a model is made of.
#include "engine/pass/pass.h"

#include <cstring>

#include "engine/kernels/outliers.h"

namespace fovea {

Pass::Share Pass::share(std::uint32_t n, std::uint32_t i, std::uint32_t n_parts) noexcept {
    return {static_cast<std::uint32_t>(std::uint64_t{n} * i / n_parts),
            static_cast<std::uint32_t>(std::uint64_t{n} * (i + 1) / n_parts)};
}

void Pass::run_phase(const char* name, const Output& output, const Units& units, const WorkCall& work,
                     Then then) noexcept {
    if (stopped) return;
    if (alone())
        work({0, units.n});
    else if (units.n_pieces == 0)
        work(share(units.n, member, n_members));
    else
        for (std::uint32_t i; (i = claim_work(*workspace.team)) < units.n_pieces;)
            work(share(units.n, i, units.n_pieces));
    if (then == Then::meet || is_shown(output)) meet(name, output);
}

void Pass::meet(const char* name, const Output& output) noexcept {
    // Member 0 asks for all. Its answers have two places in turn, for members still read one while the next is written.
    bool& answer = workspace.cancelled[n_met++ % 2];
    // Ranks agree on it elsewhere, and may be lost besides.
    if (workspace.cancel && member == 0 && !workspace.by_ranks())
        answer = workspace.cancel->load(std::memory_order_relaxed);
    if (!alone()) barrier(*workspace.team);
    stopped = (workspace.cancel || workspace.by_ranks()) && answer;
    if (!stopped) show(name, output);
}

void Pass::show(const char* name, const Output& output) noexcept {
    if (stopped || !is_shown(output)) return;
    if (member == 0)
        for (std::uint32_t row = 0; row < output.n_rows; ++row)
            workspace.trace.call(workspace.trace.context, output.first + row, layer, name,
                                 {output.rows[row], output.width});
    if (!alone()) barrier(*workspace.team);
}

void Pass::norm(const NormWeights& norm, const float* x, std::uint32_t n, float* y) const noexcept {
    const FloatKernels& k = workspace.kernels->floats;
    const float* weight = workspace.vector(norm.weight);
    switch (norm.kind) {
        case Norm::rms: return k.rms_norm(x, n, weight, norm.epsilon, y);
        case Norm::layer: return k.layer_norm(x, n, weight, workspace.vector(norm.bias), norm.epsilon, y);
        case Norm::none: break;
    }
    if (x != y) std::memcpy(y, x, n * sizeof(float));
}

void Pass::pack(const Packing& packing, const float* x, std::uint64_t stride, RowBlocks::Block block,
                void* operand) const noexcept {
    const auto& [type, n_all, n_cols, scales, n_outliers] = packing;
    const float* columns = has(Part::columns) ? workspace.vector(scales) : nullptr;
    if (has(Part::columns) && n_outliers) {  // as many scales are 0, or open_model would have refused the file
        auto* behind = reinterpret_cast<float*>(static_cast<std::byte*>(operand) + operand_bytes(type, n_all, n_cols));
        take_outliers(columns, x, static_cast<std::size_t>(stride), block.n_rows, n_cols, n_outliers,
                      behind + std::size_t{block.first} * n_outliers);
    }
    workspace.kernels->pack(type, x, static_cast<std::size_t>(stride), columns, {block.first, block.n_rows, n_all},
                            n_cols, static_cast<std::byte*>(operand));
}

const void* Pass::own_operand(const Packing& packing, const float* row, const NormWeights& weights) const noexcept {
    float* own = scratch();
    if (weights.kind != Norm::none) {
        norm(weights, row, packing.n_cols, own);
        row = own;
    }
    if (!is_quantized(packing.type)) return row;  // one packed row of floats is the row itself
    const OwnRow at(workspace.map.hidden_stride, packing.n_cols);
    own += operand_kind(packing.type) == OperandKind::broad_groups ? at.broad_groups : at.groups;
    pack(packing, row, 0, {0, 1}, own);
    return own;
}

const void* Pass::operand(Type type, const ConstRows& rows, std::uint32_t n_rows, std::uint32_t width,
                          const NormWeights& weights) noexcept {
    const Packing packing{type, n_rows, width, weights.columns, weights.n_outliers};
    if (n_rows == 1) return own_operand(packing, rows[0], weights);
    std::byte* operand = workspace.arena + workspace.map.operand;
    const RowBlocks blocks(n_rows);
    phase("operand", {}, in_parts(blocks.n), [&](Share mine) {
        for (std::uint32_t block = mine.begin; block < mine.end; ++block) {
            const auto [first, n] = blocks[block];
            const float* source = rows[first];
            std::uint64_t stride = rows.stride;
            if (weights.kind != Norm::none || rows.each) {
                for (std::uint32_t i = 0; i < n; ++i)
                    norm(weights, rows[first + i], width, scratch() + i * workspace.map.hidden_stride);
                source = scratch();
                stride = workspace.map.hidden_stride;
            }
            pack(packing, source, stride, {first, n}, operand);
        }
    });
    return operand;
}

void Pass::multiply(const char* name, const Output& output, std::span<const Linear> products, const void* operand,
                    std::uint32_t n_rows, Then then) noexcept {
    if (by_ranks()) return multiply_by_ranks(name, output, products, operand, n_rows);
    std::uint32_t total = 0;
    for (const Linear& p : products) total += n_pairs(p.matrix);
    phase(
        name, output, pairs(total, n_rows), [&](Share mine) { multiply(products, operand, n_rows, mine); }, then);
}

Units Pass::pairs(std::uint32_t n, std::uint32_t n_rows) const noexcept {
    const std::uint32_t n_pieces = n_members * kPieces < n ? n_members * kPieces : n;
    return n_rows <= kFewRows ? in_parts(n) : as_they_come(n, n_pieces);
}

namespace {

/// Panels of an adapter's product lie in its own file.
[[nodiscard]] const std::byte* panels_of(const Linear& product, const WorkspaceState& workspace) noexcept {
    const std::byte* file = product.file;
    return has(Part::adapters) && file ? file + product.matrix.offset : workspace.weights(product.matrix.offset);
}

}  // namespace

void Pass::multiply(std::span<const Linear> products, const void* operand, std::uint32_t n_rows,
                    Share pairs) const noexcept {
    std::uint32_t first = 0;
    for (const Linear& p : products) {
        const std::uint32_t n = n_pairs(p.matrix);
        const Share mine = pairs.within(first, n);
        first += n;
        if (mine.begin == mine.end) continue;
        const std::uint32_t panel_end = mine.end * kPair;
        const Matmul product{
            .panels = panels_of(p, workspace),
            .panel_stride = static_cast<std::size_t>(p.matrix.panel_stride),
            .n_rows = p.n_stored,
            .n_cols = p.matrix.n_cols,
            .panel_begin = mine.begin * kPair,
            .panel_end = panel_end < p.matrix.n_panels() ? panel_end : p.matrix.n_panels(),
            .operand = operand,
            .seq_len = n_rows,
            .bias = workspace.vector(p.bias),
            .out = p.out.data,
            .out_stride = static_cast<std::size_t>(p.out.stride),
            .out_rows = p.out.each,
            .epilogue = p.epilogue,
            .activation = p.activation,
            .canonical = p.canonical,
            .second_level = has(Part::teams) && workspace.fetches_to_second_level,
            .n_outliers = has(Part::columns) ? p.matrix.n_outliers : 0u,
            .outliers_at =
                has(Part::columns) ? static_cast<std::size_t>(outliers_at(p.matrix.type, p.matrix.n_cols)) : 0u,
        };
        workspace.kernels->matmul(p.matrix.type, product);
    }
}

}  // namespace fovea
