// One attention without a stack around it: a module's maps, or heads as a caller has them.
#include "engine/blocks/attention.h"

namespace fovea {

void lone_attention(Pass& pass, const Layer& layer, const Block& b) noexcept {
    const Attention a(pass, layer, b, Reads::self);
    const AttentionShape& shape = b.attention;
    const AttendInput& in = *pass.heads;
    if (!shape.no_projections) {
        const auto input = [&](const Heads& heads, std::uint32_t n_rows, std::uint32_t width) {
            width = or_else(width, pass.stack().d_model);
            return Input{{heads.data.data(), width}, n_rows, width, {}};
        };
        const std::uint32_t n_keys = in.n_sequences * in.n_keys;
        project(a, {input(in.query, pass.seq_len, shape.query_width), input(in.key, n_keys, shape.key_width),
                    input(in.value, n_keys, shape.value_width)});
    }
    rotate_and_cache(a);
    attend_sequences(a);
    if (shape.no_projections || !shape.has_output_map) return;
    const Linear output{.matrix = a.tensors.output,
                        .bias = a.tensors.output_bias,
                        .out = pass.out,
                        .n_stored = a.tensors.output.n_rows,
                        .canonical = true};
    const std::uint32_t merged = shape.n_heads * shape.value_head_dim;
    const void* operand =
        pass.operand(output.matrix.type, pass.attended(), pass.seq_len, merged,
                     NormWeights{}.with(pass.columns(&ColumnTensors::attention_output), output.matrix));
    pass.multiply("output", {}, {&output, 1}, operand, pass.seq_len, Then::go_on);
}

}  // namespace fovea
