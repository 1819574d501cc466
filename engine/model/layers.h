// Where a model's tensors are in its file, layer by layer, as the arena keeps it.
#pragma once
#include "engine/format/format.h"
#include "engine/model/kind.h"
#include "engine/model/model.h"
#include "fovea/model.h"

namespace fovea {

/// A weight matrix in the file. `offset` is from the file's start; 0 where the model has none.
struct Matrix {
    std::uint64_t offset = 0;
    std::uint64_t panel_stride = 0;
    std::uint32_t n_rows = 0, n_cols = 0;
    Type type = Type::f32;
    std::uint8_t reserved[7] = {};

    [[nodiscard]] std::uint32_t n_panels() const noexcept { return (n_rows + kLanes - 1) / kLanes; }
};

/// A vector in the file, by its offset from the file's start; 0 where the model has none.
using VectorOffset = std::uint64_t;

/// How a tensor is kept, by its layout.
namespace kept {
using vector = VectorOffset;
using panels = Matrix;
using rows = const TensorRecord*;
using rows_or_panels = rows;
}  // namespace kept

// The tensors of one attention, of a feed-forward, and of a stack: the fields that roles.inc lists. Offsets rather than
// pointers, so that a plan has the same bytes on 32-bit and 64-bit machines.
struct AttentionTensors {
#define FOVEA_SELF_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};
struct FeedForwardTensors {
#define FOVEA_FEED_FORWARD_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// Those of one layer's experts, where its block has any.
struct ExpertTensors {
#define FOVEA_EXPERT_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// Bytes of an AdapterUse (adapters/adapters.h) in the arena, whatever a pointer's size.
inline constexpr std::uint64_t kAdapterUseBytes = 64;

/// Those of one layer of an adapter, by their offsets in its own file.
struct AdapterTensors {
#define FOVEA_ADAPTER_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// Those of one layer's attention beside the usual ones, where it is latent or its queries come by way of a narrower row.
struct LatentTensors {
#define FOVEA_LATENT_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// Those of one layer's distances, where its positions are disentangled.
struct DistanceTensors {
#define FOVEA_DISTANCE_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// What the inputs of one layer's matrices are multiplied by, and in layer 0 that of its stack's output head.
struct ColumnTensors {
#define FOVEA_COLUMN_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// What a layer does with what tokens give it, and in layer 0 what makes that of all layers; the rest of Part::layer_inputs.
struct InputTensors {
#define FOVEA_INPUT_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// Those of one map of a stack's head.
struct HeadTensors {
#define FOVEA_HEAD_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// Those before the layers of a stack that hears. `filters` is for who makes the frames.
struct SoundTensors {
#define FOVEA_SOUND_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// One layer's tensors, and which of its stack's blocks it is. Those of attention to a memory are kept apart, where
/// there is one: see WorkspaceState::cross.
struct Layer {
    AttentionTensors self;
    FeedForwardTensors feed_forward;
    std::uint32_t block = 0;
    std::uint32_t reserved = 0;
};

/// Whether any layer has what LatentTensors are for.
[[nodiscard]] constexpr bool is_latent(const Config& config) noexcept {
    if (!has(Part::latent)) return false;
    for (const Stack* s : {&config.encoder, &config.decoder})
        for (std::uint32_t i = 0; i < s->n_blocks; ++i)
            if (s->blocks[i].query_rank || s->blocks[i].latent_query_dim) return true;
    return false;
}

/// Whether any layer has what ColumnTensors are for.
[[nodiscard]] constexpr bool has_columns(const Config& config) noexcept {
    if (!has(Part::columns)) return false;
    for (const Stack* s : {&config.encoder, &config.decoder}) {
        if (s->output_columns) return true;
        for (std::uint32_t i = 0; i < s->n_blocks; ++i)
            if (s->blocks[i].column_scales) return true;
    }
    return false;
}

/// Whether any layer has what DistanceTensors are for.
[[nodiscard]] constexpr bool has_distances(const Config& config) noexcept {
    if (!has(Part::vectors)) return false;
    for (std::uint32_t i = 0; i < config.encoder.n_blocks; ++i)
        if (config.encoder.blocks[i].position == Position::disentangled) return true;
    return false;
}

/// Whether any layer has what InputTensors are for, or shares another's keys.
[[nodiscard]] constexpr bool has_layer_inputs(const Config& config) noexcept {
    if (!has(Part::layer_inputs)) return false;
    for (const Stack* s : {&config.encoder, &config.decoder})
        for (std::uint32_t i = 0; i < s->n_blocks; ++i)
            if (has_layer_inputs(s->blocks[i])) return true;
    return false;
}

static_assert(sizeof(Matrix) == 32 && sizeof(Layer) == 368 && sizeof(HeadTensors) == 56 &&
              sizeof(ExpertTensors) == 224 && sizeof(AdapterTensors) == 576 && sizeof(LatentTensors) == 112 &&
              sizeof(ColumnTensors) == 64 && sizeof(DistanceTensors) == 72 && sizeof(InputTensors) == 160 &&
              sizeof(SoundTensors) == 88);

/// What a stack has beside its layers. `output` is the output head, maybe the embedding table itself.
struct StackTensors {
#define FOVEA_STACK_TENSOR(field, role, number, layout, ...) kept::layout role{};
#define FOVEA_BLOCK_TENSOR(field, role, number, layout, ...) kept::layout role[kMaxBlocks]{};
#define FOVEA_EMBEDDING_TENSOR(field, role, number, layout, ...) kept::layout role{};
#include "engine/format/roles.inc"
    std::uint32_t first_layer = 0;   // in the arena's list: the encoder's layers, then the decoder's
    std::uint64_t macs_per_row = 0;  // multiplications by weights, without the output head
};

/// Finds the tensors of a stack's head, which go to `maps` [n_head_maps].
void find_head(const Model& model, StackIndex index, HeadTensors* maps) noexcept;

/// Finds those of a stack's experts, which go to `layers` [n_layers], and adds to `t` what they multiply.
void find_experts(const Model& model, StackIndex index, ExpertTensors* layers, StackTensors& t) noexcept;

/// The same for what latent attention has, or queries by way of a narrower row.
void find_latent(const Model& model, StackIndex index, LatentTensors* layers, StackTensors& t) noexcept;

/// The same for the distances of the encoder's layers; a row multiplies by more of them where it has more keys.
void find_distances(const Model& model, DistanceTensors* layers, StackTensors& t) noexcept;

/// The same for column scales, which multiply no weights.
void find_columns(const Model& model, StackIndex index, ColumnTensors* layers) noexcept;

/// The same for what tokens give each layer, and norms of values.
void find_inputs(const Model& model, StackIndex index, InputTensors* layers, StackTensors& t) noexcept;

/// Finds those before the encoder's layers, where it hears, and adds to `t` what they multiply.
void find_sound(const Model& model, SoundTensors* sound, StackTensors& t) noexcept;

/// Finds one layer's of an adapter.
[[nodiscard]] AdapterTensors find_adapter(const Model& model, StackIndex index, std::uint32_t layer) noexcept;

/// Finds a stack's tensors and those of its layers, which go to `layers` [n_layers] and, where `cross` is not null, to
/// `cross` [n_layers]. open_model has established that all that the configuration calls for are there.
[[nodiscard]] StackTensors find_tensors(const Model& model, StackIndex index, Layer* layers,
                                        AttentionTensors* cross) noexcept;

}  // namespace fovea
