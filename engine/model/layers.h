// Where a model's tensors are in its file, layer by layer, as the arena keeps it.
#pragma once
#include <new>

#include "engine/format/format.h"
#include "engine/format/variants.h"
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

/// Finds the tensors of one layer of a stack, or of one map of its head; open_model has established that those it calls for
/// are there.
struct Finder {
    const Model& model;
    StackIndex stack;
    std::uint32_t layer = 0;

    void operator()(Role role, const TensorRecord*& out) const noexcept;
    void operator()(Role role, VectorOffset& out) const noexcept;
    void operator()(Role role, Matrix& out) const noexcept;
};

/// Multiplications by matrices, for each row.
[[nodiscard]] constexpr std::uint64_t macs_of(const auto&... matrices) noexcept {
    return (std::uint64_t{0} + ... + (std::uint64_t{matrices.n_rows} * matrices.n_cols));
}

// The tensors of one part of a block or of a stack: the fields that roles.inc lists. Offsets rather than pointers, so that a
// plan has the same bytes on 32-bit and 64-bit machines. Those of parts.inc's layers say which blocks need them, and what a row
// multiplies by.
struct AttentionTensors {
#define FOVEA_SELF_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};
struct FeedForwardTensors {
#define FOVEA_FEED_FORWARD_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"
};

/// Those of experts, of which a row uses some.
struct ExpertTensors {
#define FOVEA_EXPERT_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_EXPERT_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept { return b.experts.n != 0; }
    [[nodiscard]] constexpr std::uint64_t macs(const Block& b) const noexcept {
        const std::uint64_t each = b.experts.n ? (macs_of(up) + macs_of(down)) / b.experts.n : 0;
        return macs_of(router, shared_up, shared_down) + each * b.experts.n_used;
    }
};

/// Bytes of an AdapterUse (blocks/adapters.h) in the arena, whatever a pointer's size.
inline constexpr std::uint64_t kAdapterUseBytes = 64;

/// Those of one layer of an adapter, by their offsets in its own file.
struct AdapterTensors {
#define FOVEA_ADAPTER_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_ADAPTER_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
};

/// Those of attention beside the usual ones, where it is latent or its queries come by way of a narrower row.
struct LatentTensors {
#define FOVEA_LATENT_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_LATENT_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept {
        return b.latent.query_rank || b.latent.query_dim;
    }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept {
        return macs_of(query_down, query, value);
    }
};

/// Those of disentangled positions. A row multiplies by more of them where it has more keys.
struct DistanceTensors {
#define FOVEA_DISTANCE_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_DISTANCE_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept {
        return b.attention.position == Position::disentangled;
    }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept { return macs_of(keys); }
};

/// What the inputs of one layer's matrices are multiplied by, and in layer 0 that of its stack's output head.
struct ColumnTensors {
#define FOVEA_COLUMN_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_COLUMN_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
    [[nodiscard]] static constexpr bool needed(const Stack& s, const Block& b) noexcept {
        return s.output_columns || b.column_scales;
    }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept { return 0; }
};

/// What a layer does with what tokens give it, and in layer 0 what makes that of all layers; the rest of Part::layer_inputs.
struct InputTensors {
#define FOVEA_INPUT_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_INPUT_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept { return has_layer_inputs(b); }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept { return macs_of(map, gate, output); }
};

/// Those of one map of a stack's head.
struct HeadTensors {
#define FOVEA_HEAD_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_HEAD_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
};

/// Those before the layers of a stack that hears. `filters` is for who makes the frames.
struct SoundTensors {
#define FOVEA_SOUND_TENSOR(field, role, number, layout, ...) kept::layout field{};
#include "engine/format/roles.inc"

    void find(const Finder& at) noexcept {
#define FOVEA_SOUND_TENSOR(field, role, ...) at(Role::role, field);
#include "engine/format/roles.inc"
    }
    /// The first convolution makes each of a row's two frames.
    [[nodiscard]] constexpr std::uint64_t macs() const noexcept { return 2 * macs_of(first) + macs_of(second); }
};

/// One layer's tensors, and which of its stack's blocks it is. Those of attention to a memory are kept apart, where
/// there is one: see WorkspaceState::cross.
struct Layer {
    AttentionTensors self;
    FeedForwardTensors feed_forward;
    std::uint32_t block = 0;
    std::uint32_t reserved = 0;
};

/// Layers of both stacks, where any of their blocks needs T; else 0.
template<class T>
[[nodiscard]] constexpr std::uint64_t n_layers_with(const Config& config) noexcept {
    for (const Stack* s : {&config.encoder, &config.decoder})
        for (std::uint32_t i = 0; i < s->n_blocks; ++i)
            if (T::needed(*s, s->blocks[i])) return n_layers_of(config);
    return 0;
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
    std::uint64_t macs_per_row = 0;  // multiplications by weights, without the output head
};

template<class T>
[[nodiscard]] T found(const Finder& at) noexcept {
    T tensors;
    tensors.find(at);
    return tensors;
}

/// Finds a part's tensors of a stack's layers, which go to `layers` [n_layers], and adds to `t` what they multiply.
template<class T>
void find_layers(const Model& model, StackIndex index, T* layers, StackTensors& t) noexcept {
    const Stack& stack = stack_of(model.config(), index);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        t.macs_per_row += (new (layers + i) T(found<T>({model, index, i})))->macs(stack.block(i));
}

/// Finds a stack's tensors and those of its layers, which go to `layers` [n_layers] and, where `cross` is not null, to
/// `cross` [n_layers]. open_model has established that all that the configuration calls for are there.
[[nodiscard]] StackTensors find_tensors(const Model& model, StackIndex index, Layer* layers,
                                        AttentionTensors* cross) noexcept;

}  // namespace fovea
