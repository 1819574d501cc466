#include "engine/model/layers.h"

#include <new>

#include "engine/format/parts.h"

namespace fovea {
namespace {

/// Finds the tensors of one layer of a stack; open_model has established that those it calls for are there.
struct Finder {
    const Model& model;
    StackIndex stack;
    std::uint32_t layer = 0;

    void operator()(Role role, const TensorRecord*& out) const noexcept {
        out = ModelAccess::find(model, stack, layer, role);
    }
    void operator()(Role role, VectorOffset& out) const noexcept {
        const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
        out = t ? ModelAccess::offset(model, *t) : 0;
    }
    void operator()(Role role, Matrix& out) const noexcept {
        const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
        if (!t) return;
        out = {ModelAccess::offset(model, *t), t->panel_stride, t->n_rows, t->n_cols, static_cast<Type>(t->type)};
    }
};

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

[[nodiscard]] std::uint64_t macs_per_row(const AttentionTensors& a) noexcept {
    std::uint64_t macs = 0;
    for (const Matrix* m : {&a.query, &a.key, &a.value, &a.output}) macs += std::uint64_t{m->n_rows} * m->n_cols;
    return macs;
}

[[nodiscard]] std::uint64_t macs_per_row(const Layer& layer) noexcept {
    std::uint64_t macs = macs_per_row(layer.self);
    for (const Matrix* m : {&layer.feed_forward.up, &layer.feed_forward.down})
        macs += std::uint64_t{m->n_rows} * m->n_cols;
    return macs;
}

}  // namespace

StackTensors find_tensors(const Model& model, StackIndex index, Layer* layers, AttentionTensors* cross) noexcept {
    const Config& config = model.config();
    const Stack& stack = index == StackIndex::encoder ? config.encoder : config.decoder;
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
        t.macs_per_row += macs_per_row(layer);
        if (has(Part::vectors) && cross)
            t.macs_per_row += macs_per_row(*new (cross + i) AttentionTensors(find_cross({model, index, i})));
    }
    return t;
}

void find_experts(const Model& model, StackIndex index, ExpertTensors* layers, StackTensors& tensors) noexcept {
    if (!has(Part::experts)) return;
    const Stack& stack = index == StackIndex::encoder ? model.config().encoder : model.config().decoder;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        ExpertTensors& t = *new (layers + i) ExpertTensors;
        const Finder find{model, index, i};
#define FOVEA_EXPERT_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
        const Block& b = stack.block(i);
        for (const Matrix* m : {&t.router, &t.shared_up, &t.shared_down})
            tensors.macs_per_row += std::uint64_t{m->n_rows} * m->n_cols;
        for (const Matrix* m : {&t.up, &t.down})
            if (b.n_experts)
                tensors.macs_per_row += std::uint64_t{m->n_rows / b.n_experts} * m->n_cols * b.n_experts_used;
    }
}

AdapterTensors find_adapter(const Model& model, StackIndex index, std::uint32_t layer) noexcept {
    AdapterTensors t;
    const Finder find{model, index, layer};
#define FOVEA_ADAPTER_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
    return t;
}

void find_latent(const Model& model, StackIndex index, LatentTensors* layers, StackTensors& tensors) noexcept {
    if (!has(Part::latent)) return;
    const Stack& stack = index == StackIndex::encoder ? model.config().encoder : model.config().decoder;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        LatentTensors& t = *new (layers + i) LatentTensors;
        const Finder find{model, index, i};
#define FOVEA_LATENT_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
        for (const Matrix* m : {&t.query_down, &t.query, &t.value})
            tensors.macs_per_row += std::uint64_t{m->n_rows} * m->n_cols;
    }
}

void find_distances(const Model& model, DistanceTensors* layers, StackTensors& tensors) noexcept {
    const Stack& stack = model.config().encoder;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        DistanceTensors& t = *new (layers + i) DistanceTensors;
        const Finder find{model, StackIndex::encoder, i};
#define FOVEA_DISTANCE_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
        tensors.macs_per_row += std::uint64_t{t.keys.n_rows} * t.keys.n_cols;
    }
}

void find_columns(const Model& model, StackIndex index, ColumnTensors* layers) noexcept {
    if (!has(Part::columns)) return;
    const Stack& stack = index == StackIndex::encoder ? model.config().encoder : model.config().decoder;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        ColumnTensors& t = *new (layers + i) ColumnTensors;
        const Finder find{model, index, i};
#define FOVEA_COLUMN_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
    }
}

void find_inputs(const Model& model, StackIndex index, InputTensors* layers, StackTensors& tensors) noexcept {
    if (!has(Part::layer_inputs)) return;
    const Stack& stack = index == StackIndex::encoder ? model.config().encoder : model.config().decoder;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        InputTensors& t = *new (layers + i) InputTensors;
        const Finder find{model, index, i};
#define FOVEA_INPUT_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
        for (const Matrix* m : {&t.map, &t.gate, &t.output})
            tensors.macs_per_row += std::uint64_t{m->n_rows} * m->n_cols;
    }
}

void find_sound(const Model& model, SoundTensors* sound, StackTensors& tensors) noexcept {
    SoundTensors& t = *new (sound) SoundTensors;
    const Finder find{model, StackIndex::encoder};
#define FOVEA_SOUND_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
    const std::uint64_t first = std::uint64_t{t.first.n_rows} * t.first.n_cols;  // of each of a row's two frames
    tensors.macs_per_row += 2 * first + std::uint64_t{t.second.n_rows} * t.second.n_cols;
}

void find_head(const Model& model, StackIndex index, HeadTensors* maps) noexcept {
    const Stack& stack = index == StackIndex::encoder ? model.config().encoder : model.config().decoder;
    for (std::uint32_t i = 0; i < stack.n_head_maps(); ++i) {
        HeadTensors& t = *new (maps + i) HeadTensors;
        const Finder find{model, index, i};
#define FOVEA_HEAD_TENSOR(field, role, ...) find(Role::role, t.field);
#include "engine/format/roles.inc"
    }
}

}  // namespace fovea
