// The order of a pass: what is run before the layers, in each of them, and behind them.
#include "engine/blocks/attention.h"
#include "engine/blocks/block.h"
#include "engine/blocks/layer_inputs.h"

namespace fovea {

void run_pass(Pass& pass) noexcept {
    const Layer* layers = pass.workspace.layers() + pass.first_layer();
    if (has(Part::vectors) && pass.heads) return lone_attention(pass, layers[0], pass.stack().blocks[0]);
    const bool fills_memory = has(Part::vectors) && pass.fills_memory;
    if (!fills_memory) embed(pass);
    if (has(Part::layer_inputs) && input_stride(pass.stack())) LayerInputs::make(pass);
    if (pass.stage().several() && !fills_memory) pass.take_rows();
    const UnitShare own = pass.layers();
    for (pass.layer = own.begin; pass.layer < own.end && !pass.stopped; ++pass.layer) {
        const Layer& layer = layers[pass.layer];
        const Block& block = pass.stack().blocks[layer.block];
        if (pass.workspace.by_ranks()) pass.agree();
        if (!fills_memory)
            run_block(pass, layer);
        else if (block.attention.cross_attention)
            cache_memory(pass, layer, block);
    }
    if (fills_memory) return;
    if (pass.stage().several()) pass.hand_on_rows();
    has(Part::vectors) && pass.out.data ? StackHead::vectors(pass) : StackHead::logits(pass);
}

}  // namespace fovea
