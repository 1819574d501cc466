#include "engine/stream/stream.h"

#include "engine/stream/adapters.h"

namespace fovea {

void norm_rows(Pass& pass, const char* name, const Output& output, const NormWeights& weights, const Rows& rows,
               std::uint32_t width) noexcept {
    if (weights.kind == Norm::none) return;
    pass.phase(name, output, in_parts(pass.seq_len), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) pass.norm(weights, rows[row], width, rows[row]);
    });
}

void add_rows(const Pass& pass, const Block& block, const PartNorms& norms, const Rows& y, Pass::Share rows) noexcept {
    if (!has(Part::block_variants)) return;
    const std::uint32_t d_model = pass.stack().d_model;
    const float scale = block.residual_scale != 0.0f ? block.residual_scale : 1.0f;
    for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
        float *to = pass.hidden()[row], *from = y[row];
        pass.norm(norms.output, from, d_model, from);
        for (std::uint32_t i = 0; i < d_model; ++i) to[i] = to[i] + from[i] * scale;
    }
}

void add_to_stream(Pass& pass, const char* name, const Linear& product, const void* operand, const Block& block,
                   const PartNorms& norms) noexcept {
    const std::uint32_t d_model = pass.stack().d_model;
    const Output stream = pass.all(pass.hidden(), d_model);
    const Output before_norm = norms.after.kind == Norm::none ? stream : Output{};
    const bool adapts = is_adapted(pass, product.adapted);
    if (has(Part::block_variants) && adds_by_rows(block)) {
        const Rows projected = pass.projected();
        Linear stored = product;
        stored.out = projected;
        stored.epilogue = Epilogue::store;
        pass.multiply(name, {}, {&stored, 1}, operand, pass.seq_len);
        if (adapts) add_adapted(pass, block, product.adapted, projected);
        pass.phase(name, before_norm, in_parts(pass.seq_len),
                   [&](Pass::Share mine) { add_rows(pass, block, norms, projected, mine); });
    } else {
        pass.multiply(name, adapts ? Output{} : before_norm, {&product, 1}, operand, pass.seq_len);
        if (adapts) add_adapted(pass, block, product.adapted, product.out);
        if (adapts) pass.show(name, before_norm);
    }
    norm_rows(pass, name, stream, norms.after, pass.hidden(), d_model);
}

}  // namespace fovea
