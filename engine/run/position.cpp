// From ids or vectors to the residual stream: a row of the embedding table, scaled, plus a learned position and a token
// type, normed where the stack asks for it (Devlin et al. 2019); and the pass's rotation tables (Su et al. 2021), one
// row per position, shared by all layers of a block shape.
#include <cstring>

#include "../model/half.h"
#include "../model/model.h"
#include "pass.h"

namespace fovea {
namespace {

[[nodiscard]] float element(const std::byte* data, Type type, std::uint64_t index) noexcept {
    if (type == Type::f32) {
        float value;
        std::memcpy(&value, data + index * 4, 4);
        return value;
    }
    std::uint16_t half;
    std::memcpy(&half, data + index * 2, 2);
    return type == Type::f16 ? from_f16(half) : from_bf16(half);
}

/// Calls put(i, x) with each element of one row of a table. A table of panels keeps a row's elements 16 apart.
template<class Put>
void read_row(const WorkspaceState& w, const TensorRecord& t, std::uint32_t row, Put&& put) noexcept {
    const std::byte* data = w.weights(ModelAccess::offset(w.model, t));
    const auto type = static_cast<Type>(t.type);
    std::uint64_t at = std::uint64_t{row} * t.n_cols, step = 1;
    if (t.layout == static_cast<std::uint8_t>(Layout::panels)) {
        data += row / kLanes * t.panel_stride;
        at = row % kLanes;
        if (is_quantized(type)) {
            const QuantPanel panel{data, type};
            for (std::uint32_t i = 0; i < t.n_cols; ++i) put(i, panel.weight(i, at));
            return;
        }
        step = kLanes;
    }
    for (std::uint32_t i = 0; i < t.n_cols; ++i) put(i, element(data, type, at + i * step));
}

}  // namespace

void embed(Pass& pass) noexcept {
    const WorkspaceState& w = pass.workspace;
    const Stack& stack = pass.stack();
    const StackTensors& t = pass.tensors();
    const NormWeights norm{stack.embedding_norm, t.embedding_norm, t.embedding_norm_bias, stack.final_norm_epsilon};
    const auto make_row = [&](std::uint32_t row, std::uint32_t pos) {
        float* x = pass.hidden()[row];
        const auto scaled = [&](std::uint32_t i, float value) { x[i] = value * stack.embedding_scale; };
        const auto added = [&](std::uint32_t i, float value) { x[i] = x[i] + value; };
        if (t.token_embedding)
            read_row(w, *t.token_embedding, pass.tokens[row], scaled);
        else
            for (std::uint32_t i = 0; i < stack.d_model; ++i)
                scaled(i, pass.vectors[std::size_t{row} * stack.d_model + i]);
        if (t.position_embedding) read_row(w, *t.position_embedding, pos, added);
        if (t.type_embedding) read_row(w, *t.type_embedding, pass.types.empty() ? 0 : pass.types[row], added);
        if (norm.kind != Norm::none) pass.norm(norm, x, stack.d_model, x);
        for (std::uint32_t i = 0; i < stack.n_blocks; ++i) {
            const Block& b = stack.blocks[i];
            if (b.position != Position::rope) continue;
            float* cosines = pass.rotation(i, row);
            w.kernels->floats.rope_table(pos, w.vector(t.rope_frequencies[i]), b.rotary_dim / 2, b.rope_scale, cosines,
                                         cosines + w.map.rotation_stride);
        }
    };
    pass.phase("embedding", pass.all(pass.hidden(), stack.d_model), in_parts(pass.seq_len), [&](Pass::Share rows) {
        const Sequence* sequence = pass.self.data();
        for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
            while (row >= sequence->row + sequence->n_rows) ++sequence;
            make_row(row, sequence->pos + row - sequence->row);
        }
    });
}

void rotate_head(const Pass& pass, const Layer& layer, std::uint32_t row, float* head) noexcept {
    const Block& b = pass.stack().blocks[layer.block];
    if (b.position != Position::rope) return;
    const float* cosines = pass.rotation(layer.block, row);
    pass.workspace.kernels->floats.rotate(head, cosines, cosines + pass.workspace.map.rotation_stride, b.rotary_dim);
}

}  // namespace fovea
