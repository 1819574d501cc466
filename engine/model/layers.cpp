#include "engine/model/layers.h"

namespace fovea {

void Finder::operator()(Role role, const TensorRecord*& out) const noexcept {
    out = ModelAccess::find(model, stack, layer, role);
}

void Finder::operator()(Role role, VectorOffset& out) const noexcept {
    const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
    out = t ? ModelAccess::offset(model, *t) : 0;
}

void Finder::operator()(Role role, Matrix& out) const noexcept {
    const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
    if (!t) return;
    out = {ModelAccess::offset(model, *t), t->panel_stride, t->n_rows, t->n_cols, static_cast<Type>(t->type)};
}

namespace {

[[nodiscard]] Layer find_layer(const Finder& find) noexcept {
    Layer layer;
#define FOVEA_SELF_TENSOR(field, role, ...) find(Role::role, layer.self.field);
#define FOVEA_FEED_FORWARD_TENSOR(field, role, ...) find(Role::role, layer.feed_forward.field);
#include "engine/format/roles.inc"
    return layer;
}

[[nodiscard]] AttentionTensors find_cross(const Finder& find) noexcept {
    AttentionTensors cross;
#define FOVEA_CROSS_TENSOR(field, role, ...) find(Role::role, cross.field);
#include "engine/format/roles.inc"
    return cross;
}

[[nodiscard]] std::uint64_t macs_of(const AttentionTensors& a) noexcept {
    return macs_of(a.query, a.key, a.value, a.output);
}

}  // namespace

StackTensors find_tensors(const Model& model, StackIndex index, Layer* layers, AttentionTensors* cross) noexcept {
    const Stack& stack = stack_of(model.config(), index);
    StackTensors t;
    const Finder find{model, index};
#define FOVEA_STACK_TENSOR(field, role, ...) find(Role::role, t.role);
#define FOVEA_EMBEDDING_TENSOR FOVEA_STACK_TENSOR
#include "engine/format/roles.inc"
    if (stack.tied_output) find(Role::token_embedding, t.output);
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i) {
        const Finder find_of_block{model, index, i};
#define FOVEA_BLOCK_TENSOR(field, role, ...) find_of_block(Role::role, t.role[i]);
#include "engine/format/roles.inc"
    }
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Layer& layer = *new (layers + i) Layer(find_layer({model, index, i}));
        layer.block = stack.layer_blocks.empty() ? 0 : stack.layer_blocks[i];
        t.macs_per_row += macs_of(layer.self) + macs_of(layer.feed_forward.up, layer.feed_forward.down);
        if (has(Part::vectors) && cross)
            t.macs_per_row += macs_of(*new (cross + i) AttentionTensors(find_cross({model, index, i})));
    }
    return t;
}

}  // namespace fovea
