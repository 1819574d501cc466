#include "engine/blocks/layer_inputs.h"

#include <cmath>
#include <cstring>

#include "engine/model/table.h"

namespace fovea {
namespace {

[[nodiscard]] Rows inputs(const Pass& pass) noexcept {
    return pass.rows(pass.workspace.map.layer_inputs, input_stride(pass.stack()));
}

/// A phase that makes rows of `width` elements: make(to, x, row) of each row, x being its stream.
void each_row(Pass& pass, const Rows& to, std::uint32_t width, const auto& make) noexcept {
    pass.phase("layer inputs", pass.all(to, width), in_parts(pass.seq_len), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) make(to[row], pass.hidden()[row], row);
    });
}

/// inner = activation(G·x) · i
void make_gated(Pass& pass, const Block& block, const InputTensors& t) noexcept {
    const std::uint32_t width = block.inputs.width;
    const Linear gate{.matrix = t.gate, .out = pass.inner(), .n_stored = width, .activation = block.feed.activation};
    const void* stream = pass.operand(t.gate.type, pass.hidden(), pass.seq_len, pass.stack().d_model);
    pass.multiply("layer gate", {}, {&gate, 1}, stream, pass.seq_len);
    const Rows made = inputs(pass);
    pass.phase("layer gate", pass.all(pass.inner(), width), in_parts(pass.seq_len), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) {
            float* x = pass.inner()[row];
            const float* input = made[row] + std::uint64_t{pass.layer} * width;
            for (std::uint32_t i = 0; i < width; ++i) x[i] = x[i] * input[i];
        }
    });
}

}  // namespace

void InputTensors::plan(const Planning& p) noexcept {
    for (const Block& b : p.stack.used_blocks()) {
        if (!b.inputs.joins_embedding) continue;
        grow_to(p.map.hidden_stride, pad(2 * std::uint64_t{p.stack.d_model}));  // normed in a member's scratch
        grow_to(p.map.inner_stride, pad(2 * std::uint64_t{p.stack.d_model}));
        grow_to(p.map.projected_stride, pad(p.stack.d_model));
        grow_to(p.map.attended_stride, pad(p.stack.d_model));
    }
    const std::uint32_t width = p.stack.blocks[0].inputs.width;  // every block's
    if (!width) return;
    grow_to(p.map.inner_stride, pad(width));
    grow_to(p.map.projected_stride, pad(p.stack.d_model));
    grow_to(p.widest.operand, width);
}

/// W·e / sqrt(d_model) is normed as W·e is with an epsilon that is d_model times as large.
void LayerInputs::make(Pass& pass) noexcept {
    const Stack& stack = pass.stack();
    const InputTensors& t = pass.workspace.inputs()[pass.first_layer()];
    const WorkspaceState& w = pass.workspace;
    const std::uint32_t width = stack.blocks[0].inputs.width, n = stack.n_layers * width;
    const Rows made = inputs(pass);
    if (!width)
        return each_row(pass, made, stack.d_model, [&](float* to, const float* x, std::uint32_t) {
            std::memcpy(to, x, stack.d_model * sizeof(float));
        });
    const Linear map{.matrix = t.map, .out = made, .n_stored = n};
    const void* embedded = pass.operand(t.map.type, pass.hidden(), pass.seq_len, stack.d_model);
    pass.multiply("layer inputs", {}, {&map, 1}, embedded, pass.seq_len);

    const NormWeights norm{Norm::rms, t.norm, 0, stack.final_norm_epsilon * static_cast<float>(stack.d_model)};
    const Table table{w.weights(t.table.offset), t.table.type, t.table.panel_stride, n};
    const float table_scale = std::sqrt(static_cast<float>(width)), scale = std::sqrt(0.5f);
    pass.phase("layer inputs", pass.all(made, n), in_parts(pass.seq_len * stack.n_layers), [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
            const std::uint32_t row = i / stack.n_layers, begin = i % stack.n_layers * width;
            float* x = made[row];
            pass.norm(norm, x + begin, width, x + begin);
            read_table_row(table, pass.tokens[row], begin, begin + width,
                           [&](std::uint32_t at, float value) { x[at] = (x[at] + value * table_scale) * scale; });
        }
    });
}

void LayerInputs::join(Pass& pass) noexcept {
    const std::uint32_t d_model = pass.stack().d_model;
    const Rows made = inputs(pass);
    each_row(pass, pass.inner(), 2 * d_model, [&](float* to, const float* x, std::uint32_t row) {
        std::memcpy(to, x, d_model * sizeof(float));
        std::memcpy(to + d_model, made[row], d_model * sizeof(float));
    });
}

void LayerInputs::lead(Pass& pass) noexcept {
    const std::uint32_t d_model = pass.stack().d_model;
    const InputTensors& t = pass.of_layer(pass.workspace.inputs());
    const Linear output{.matrix = t.output, .out = pass.attended(), .n_stored = d_model};
    const void* rows = pass.operand(t.output.type, pass.projected(), pass.seq_len, d_model);
    pass.multiply("layer output", {}, {&output, 1}, rows, pass.seq_len);
    each_row(pass, pass.attended(), d_model, [&](float* to, const float* x, std::uint32_t) {
        for (std::uint32_t i = 0; i < d_model; ++i) to[i] = x[i] + to[i];
    });
}

void LayerInputs::end(Pass& pass, const Block& block) noexcept {
    if (!block.inputs.width && !block.inputs.layer_scale) return;
    const std::uint32_t d_model = pass.stack().d_model;
    const InputTensors& t = pass.of_layer(pass.workspace.inputs());
    if (block.inputs.width) {
        make_gated(pass, block, t);
        const Linear output{.matrix = t.output, .out = pass.projected(), .n_stored = d_model};
        const void* gated = pass.operand(t.output.type, pass.inner(), pass.seq_len, block.inputs.width);
        pass.multiply("layer output", {}, {&output, 1}, gated, pass.seq_len);
    }
    const NormWeights norm{Norm::rms, t.output_norm, 0, block.norm_epsilon};
    const float scale = block.inputs.layer_scale ? *pass.workspace.vector(t.scale) : 1.0f;
    pass.phase("layer output", pass.all(pass.hidden(), d_model), in_parts(pass.seq_len), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) {
            float *to = pass.hidden()[row], *from = pass.projected()[row];
            if (block.inputs.width) {
                pass.norm(norm, from, d_model, from);
                for (std::uint32_t i = 0; i < d_model; ++i) to[i] = to[i] + from[i];
            }
            for (std::uint32_t i = 0; i < d_model; ++i) to[i] = to[i] * scale;
        }
    });
}

}  // namespace fovea
