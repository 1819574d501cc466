#include "engine/blocks/output_gate.h"

#include "engine/stream/stream.h"

namespace fovea {

void gate_output(Pass& pass, const Layer& layer, const Block& block, const Rows& merged) noexcept {
    const Matrix& matrix = pass.of_layer(pass.workspace.gates()).gate;
    const AttentionShape& a = block.attention;
    const std::uint32_t width = a.n_heads * merged_head_dim(block), n_each = width / matrix.n_rows;
    const bool by_sigmoid = a.output_gate == OutputGate::sigmoid || a.output_gate == OutputGate::sigmoid_of_heads;
    const Linear gate{.matrix = matrix,
                      .out = pass.projected(),
                      .n_stored = matrix.n_rows,
                      .activation = by_sigmoid ? Activation::sigmoid : Activation::softplus};
    const void* rows = pass.operand(matrix.type, pass.hidden(), pass.seq_len, pass.stack().d_model,
                                    part_norms(block, layer.self).before);
    pass.multiply("attention gate", {}, {&gate, 1}, rows, pass.seq_len);
    pass.phase("gated", pass.all(merged, width), in_parts(pass.seq_len), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) {
            float *to = merged[row], *from = pass.projected()[row];
            for (std::uint32_t i = 0; i < matrix.n_rows; ++i)
                for (std::uint32_t j = i * n_each; j < (i + 1) * n_each; ++j) to[j] = to[j] * from[i];
        }
    });
}

}  // namespace fovea
