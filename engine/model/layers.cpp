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
    if (has(Part::columns)) out.n_outliers = static_cast<std::uint8_t>(t->n_outliers);
}

StackTensors find_stack(const Model& model, StackIndex index, Layer* layers) noexcept {
    const Stack& stack = stack_of(model.config(), index);
    StackTensors t;
    const Finder find{model, index};
#define FOVEA_FIND(field, role, ...) find(Role::role, t.role);
    FOVEA_STACK_TENSORS(FOVEA_FIND)
    FOVEA_EMBEDDING_TENSORS(FOVEA_FIND)
#undef FOVEA_FIND
    if (stack.tied_output) find(Role::token_embedding, t.output);
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i) {
        const Finder find_of_block{model, index, i};
#define FOVEA_FIND(field, role, ...) find_of_block(Role::role, t.role[i]);
        FOVEA_BLOCK_TENSORS(FOVEA_FIND)
#undef FOVEA_FIND
    }
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Layer layer;
        layer.self.find({model, index, i});
        layer.feed_forward.find({model, index, i});
        layer.block = stack.layer_blocks.empty() ? 0 : stack.layer_blocks[i];
        const AttentionTensors& self = layer.self;
        t.macs_per_row +=
            macs_of(self.query, self.key, self.value, self.output, layer.feed_forward.up, layer.feed_forward.down);
        new (layers + i) Layer(layer);
    }
    return t;
}

std::uint64_t find_cross(const Model& model, AttentionTensors* cross) noexcept {
    std::uint64_t macs = 0;
    for (std::uint32_t i = 0; i < model.config().decoder.n_layers; ++i) {
        const Finder find{model, StackIndex::decoder, i};
        AttentionTensors& t = *new (cross + i) AttentionTensors;
#define FOVEA_FIND(field, role, ...) find(Role::role, t.field);
        FOVEA_CROSS_TENSORS(FOVEA_FIND)
#undef FOVEA_FIND
        macs += macs_of(t.query, t.key, t.value, t.output);
    }
    return macs;
}

}  // namespace fovea
