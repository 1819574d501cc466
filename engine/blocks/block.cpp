// One transformer block (Vaswani et al. 2017, section 3; where the norm stands: Xiong et al. 2020):
//
//     pre: x = x + f(norm(x))              post: x = norm(x + f(x))
//     both: x = x + norm'(f(norm(x)))      output: x = x + norm(f(x))
//     within: x = x + W·norm'(g(norm(x)))  for each f = W·g of                 (Wang et al. 2022)
//     W_o · attention, W_o · attention to the memory, and W_down · inner
//                                          inner(y) = act(W_up · y), or act(W_gate · y) · (W_up · y)
//     parallel: x = (x + attention(norm(x))) + inner'(norm'(x))                (Wang and Komatsuzaki 2021)
//     beside a recurrent part: x = (x + recurrent(norm(x))) + attention(norm(x))   (Zuo et al. 2025)
//     joined: see InputShape::joins_embedding
#include "engine/blocks/block.h"

#include "engine/blocks/attention.h"
#include "engine/blocks/experts.h"
#include "engine/blocks/layer_inputs.h"
#include "engine/blocks/xielu.h"
#include "engine/recurrent/recurrent.h"
#include "engine/stream/adapters.h"
#include "engine/stream/stream.h"

namespace fovea {
namespace {

/// inner = act(W_up · norm(x)), gated or not.
void compute_inner(Pass& pass, const FeedForwardTensors& t, const Block& block, const NormWeights& norm) noexcept {
    if (is_adapted(pass, Adapted::up)) return compute_adapted_inner(pass, t, block, norm);
    const Epilogue epilogue = block.feed.gated ? Epilogue::gate : Epilogue::store;
    const Linear up{t.up, t.up_bias, pass.inner(), block.feed.d_ff, epilogue, block.feed.activation};
    const Rows rows = has(Part::layer_inputs) && block.inputs.joins_embedding ? pass.projected() : pass.hidden();
    const void* normed = pass.operand(t.up.type, rows, pass.seq_len, pass.stack().d_model,
                                      norm.with(pass.columns(&ColumnTensors::up), t.up));
    pass.multiply("inner", pass.all(pass.inner(), block.feed.d_ff), {&up, 1}, normed, pass.seq_len);
}

/// W_down · inner, added; or W_down · xIELU(inner).
void add_inner(Pass& pass, const FeedForwardTensors& t, const Block& block) noexcept {
    if (has(Part::states) && block.feed.xielu)
        apply_xielu(pass, pass.workspace.vector(pass.of_layer(pass.workspace.gates()).xielu), pass.inner(),
                    block.feed.d_ff);
    const PartNorms norms = part_norms(block, t);
    if (has(Part::block_variants))
        norm_rows(pass, "inner norm", pass.all(pass.inner(), block.feed.d_ff), norms.within, pass.inner(),
                  block.feed.d_ff);
    const Linear down{.matrix = t.down,
                      .bias = t.down_bias,
                      .out = pass.hidden(),
                      .n_stored = pass.stack().d_model,
                      .epilogue = Epilogue::add,
                      .adapted = Adapted::down};
    const void* inner = pass.operand(t.down.type, pass.inner(), pass.seq_len, block.feed.d_ff,
                                     NormWeights{}.with(pass.columns(&ColumnTensors::down), t.down));
    add_to_stream(pass, "block", down, inner, block, norms);
}

/// Both parts read the stream before either is added to it.
void run_parallel(Pass& pass, const Layer& layer, const Block& block) noexcept {
    const FeedForwardTensors& t = layer.feed_forward;
    const NormWeights before = part_norms(block, layer.self).before;
    compute_attention(pass, layer, block, Reads::self);
    if (has(Part::experts) && block.experts.n) {
        Experts::compute(pass, layer, block);
        add_attention(pass, layer, block, Reads::self);
        return Experts::add(pass, layer, block);
    }
    compute_inner(pass, t, block, block.feed.shared_norm ? before : part_norms(block, t).before);
    add_attention(pass, layer, block, Reads::self);
    add_inner(pass, t, block);
}

/// `projected` = W · of rows.
void store(Pass& pass, const char* name, const Matrix& matrix, VectorOffset bias, const Rows& rows) noexcept {
    const Linear linear{.matrix = matrix, .bias = bias, .out = pass.projected(), .n_stored = pass.stack().d_model};
    const void* operand = pass.operand(matrix.type, rows, pass.seq_len, matrix.n_cols);
    pass.multiply(name, {}, {&linear, 1}, operand, pass.seq_len);
}

/// Attention and feed-forward part are a chain, and lead to what the recurrent part reads.
void run_joined(Pass& pass, const Layer& layer, const Block& block) noexcept {
    const FeedForwardTensors& t = layer.feed_forward;
    LayerInputs::join(pass);
    compute_attention(pass, layer, block, Reads::self);
    store(pass, "attention", layer.self.output, layer.self.output_bias, pass.attended());
    compute_inner(pass, t, block, part_norms(block, t).before);
    store(pass, "block", t.down, t.down_bias, pass.inner());
    LayerInputs::lead(pass);
    Recurrent::mix(pass, block, part_norms(block, pass.of_layer(pass.workspace.recurrent())).before);
    add_recurrent(pass, block);
    pass.show("block", pass.all(pass.hidden(), pass.stack().d_model));
}

void run_parts(Pass& pass, const Layer& layer, const Block& block) noexcept {
    if (has(Part::block_variants) && block.feed.parallel) return run_parallel(pass, layer, block);
    if (has(Part::states) && has(Part::layer_inputs) && block.inputs.joins_embedding)
        return run_joined(pass, layer, block);
    if (has(Part::states) && block.recurrent) {
        Recurrent::mix(pass, block, part_norms(block, pass.of_layer(pass.workspace.recurrent())).before);
        if (!block.attention.n_heads) add_recurrent(pass, block);
    }
    for (const Reads reads : {Reads::self, Reads::memory}) {
        if (!(reads == Reads::self ? block.attention.n_heads != 0
                                   : has(Part::vectors) && block.attention.cross_attention))
            continue;
        compute_attention(pass, layer, block, reads);
        add_attention(pass, layer, block, reads);
    }
    if (!block.feed.d_ff) return pass.show("block", pass.all(pass.hidden(), pass.stack().d_model));
    if (has(Part::experts) && block.experts.n) {
        Experts::compute(pass, layer, block);
        return Experts::add(pass, layer, block);
    }
    compute_inner(pass, layer.feed_forward, block, part_norms(block, layer.feed_forward).before);
    add_inner(pass, layer.feed_forward, block);
}

}  // namespace

void add_recurrent(Pass& pass, const Block& block) noexcept {
    if (!has(Part::states)) return;
    const RecurrentTensors& t = pass.of_layer(pass.workspace.recurrent());
    const Linear output{.matrix = t.output,
                        .bias = t.output_bias,
                        .out = pass.hidden(),
                        .n_stored = pass.stack().d_model,
                        .epilogue = Epilogue::add};
    const void* mixed = pass.operand(t.output.type, pass.attended(), pass.seq_len, t.output.n_cols);
    add_to_stream(pass, "recurrent", output, mixed, block, part_norms(block, t));
}

/// What attention and a feed-forward part ask for.
void Layer::plan(const Planning& p) noexcept {
    const Stack& s = p.stack;
    ArenaMap& map = p.map;
    Widest& widest = p.widest;
    grow_to(map.hidden_stride, pad(s.d_model));
    grow_to(widest.operand, s.d_model, embedding_cols(s));
    grow_to(map.inner_stride, pad(embedding_cols(s)));
    for (const Block& b : s.used_blocks()) {
        const AttentionShape& a = b.attention;
        const std::uint64_t queries = std::uint64_t{a.n_heads} * a.head_dim,
                            keys = std::uint64_t{a.n_kv_heads} * a.head_dim;
        const std::uint64_t values = std::uint64_t{a.n_kv_heads} * a.value_head_dim;
        const std::uint64_t merged = std::uint64_t{a.n_heads} * a.value_head_dim;
        if (!a.no_projections) {
            grow_to(map.projected_stride, pad(queries) + pad(keys) + pad(values));
            grow_to(map.attended_stride, pad(merged));
        }
        if (adds_by_rows(b)) grow_to(map.projected_stride, pad(s.d_model));
        grow_to(map.inner_stride, pad(b.feed.d_ff));
        grow_to(widest.operand, merged, b.feed.d_ff, a.query_width, a.key_width, a.value_width);
        if (has(Part::vectors) && a.position == Position::relative) grow_to(map.distance_heads, a.n_heads);
        if (a.position == Position::rope) grow_to(map.rotation_stride, pad(a.rotary_dim));
        widest.rotated |= a.position == Position::rope;
        grow_to(widest.n_heads, a.n_heads);
        grow_to(widest.head_dim, a.head_dim);
        grow_to(widest.value_stride, pad(a.value_head_dim));
    }
}

void run_block(Pass& pass, const Layer& layer) noexcept {
    const Block& block = pass.stack().blocks[layer.block];
    run_parts(pass, layer, block);
    if (has(Part::layer_inputs)) LayerInputs::end(pass, block);
}

}  // namespace fovea
