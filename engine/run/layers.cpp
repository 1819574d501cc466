#include "layers.h"

#include <new>

namespace fovea {
namespace {

/// Finds the tensors of one layer of a stack; open_model has established that those it calls for are there.
struct Finder {
    const Model& model;
    StackIndex stack;
    std::uint32_t layer = 0;

    void get(Role role, const TensorRecord*& out) const noexcept { out = ModelAccess::find(model, stack, layer, role); }
    void get(Role role, VectorOffset& out) const noexcept {
        const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
        out = t ? ModelAccess::offset(model, *t) : 0;
    }
    void get(Role role, Matrix& out) const noexcept {
        const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
        if (!t) return;
        out = {ModelAccess::offset(model, *t), t->panel_stride, t->n_rows, t->n_cols, static_cast<Type>(t->type)};
    }
    /// The tensors of `role` and the roles that follow it.
    void operator()(Role role, auto&... out) const noexcept { ((get(role, out), role = after(role, 1)), ...); }
};

[[nodiscard]] Layer find_layer(const Finder& find) noexcept {
    Layer layer;
    AttentionTensors &a = layer.self, &c = layer.cross;
    find(Role::attention_norm, a.norm, a.norm_bias);
    find(Role::query, a.query, a.query_bias, a.key, a.key_bias, a.value, a.value_bias, a.query_norm, a.key_norm,
         a.query_norm_bias, a.key_norm_bias, a.output, a.output_bias, a.appended_key, a.appended_value);
    find(Role::cross_norm, c.norm, c.norm_bias);
    find(Role::cross_query, c.query, c.query_bias, c.key, c.key_bias, c.value, c.value_bias, c.output, c.output_bias);
    find(Role::feed_forward_norm, layer.feed_forward_norm, layer.feed_forward_norm_bias);
    find(Role::up, layer.up, layer.up_bias, layer.down, layer.down_bias);
    return layer;
}

[[nodiscard]] std::uint64_t macs_per_row(const Layer& layer) noexcept {
    std::uint64_t macs = 0;
    for (const AttentionTensors* a : {&layer.self, &layer.cross})
        for (const Matrix* m : {&a->query, &a->key, &a->value, &a->output})
            macs += std::uint64_t{m->n_rows} * m->n_cols;
    for (const Matrix* m : {&layer.up, &layer.down}) macs += std::uint64_t{m->n_rows} * m->n_cols;
    return macs;
}

}  // namespace

StackTensors find_tensors(const Model& model, StackIndex index, Layer* layers) noexcept {
    const Config& config = model.config();
    const Stack& stack = index == StackIndex::encoder ? config.encoder : config.decoder;
    StackTensors t;
    const Finder find{model, index};
    find(Role::token_embedding, t.token_embedding, t.position_embedding, t.type_embedding, t.embedding_norm,
         t.embedding_norm_bias, t.final_norm, t.final_norm_bias, t.output, t.output_bias);
    if (stack.tied_output) find(Role::token_embedding, t.output);
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i)
        Finder{model, index, i}(Role::rope_frequencies, t.rope_frequencies[i]);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Layer& layer = *new (layers + i) Layer(find_layer({model, index, i}));
        layer.block = stack.layer_blocks.empty() ? 0 : stack.layer_blocks[i];
        t.macs_per_row += macs_per_row(layer);
    }
    return t;
}

}  // namespace fovea
