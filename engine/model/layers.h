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
    std::uint8_t n_outliers = 0;  // see outliers_at
    std::uint8_t reserved[6] = {};

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

#define FOVEA_FIELD(field, role, number, layout, ...) kept::layout field{};
#define FOVEA_FIND(field, role, ...) at(Role::role, field);
#define FOVEA_KEPT(TENSORS) \
    TENSORS(FOVEA_FIELD)    \
    void find(const Finder& at) noexcept { TENSORS(FOVEA_FIND) }

struct Planning;  // engine/pass/arena_map.h

// The tensors of one part of a block or of a stack: the fields that roles.inc lists. Offsets rather than pointers, so that a
// plan has the same bytes on 32-bit and 64-bit machines. Those of parts.inc's layers say which blocks need them, and what a row
// multiplies by; `plan`, which engine/blocks has, what they ask of the arena.
struct AttentionTensors {
    FOVEA_KEPT(FOVEA_SELF_TENSORS)
};
struct FeedForwardTensors {
    FOVEA_KEPT(FOVEA_FEED_FORWARD_TENSORS)
};

/// Those of experts, of which a row uses some.
struct ExpertTensors {
    FOVEA_KEPT(FOVEA_EXPERT_TENSORS)
    static void plan(const Planning& planning) noexcept;
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept { return b.experts.n != 0; }
    [[nodiscard]] constexpr std::uint64_t macs(const Block& b) const noexcept {
        const std::uint64_t each = b.experts.n ? (macs_of(up) + macs_of(down)) / b.experts.n : 0;
        return macs_of(router, shared_up, shared_down) + each * b.experts.n_used;
    }
};

/// Bytes of an AdapterUse (stream/adapters.h) in the arena, whatever a pointer's size.
inline constexpr std::uint64_t kAdapterUseBytes = 64;

/// Those of one layer of an adapter, by their offsets in its own file.
struct AdapterTensors {
    FOVEA_KEPT(FOVEA_ADAPTER_TENSORS)
    static void plan(const Planning& planning) noexcept;
};

/// Those of attention beside the usual ones, where it is latent or its queries come by way of a narrower row.
struct LatentTensors {
    FOVEA_KEPT(FOVEA_LATENT_TENSORS)
    static void plan(const Planning& planning) noexcept;
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept {
        return b.latent.query_rank || b.latent.query_dim;
    }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept {
        return macs_of(query_down, query, value);
    }
};

/// Those of disentangled positions. A row multiplies by more of them where it has more keys.
struct DistanceTensors {
    FOVEA_KEPT(FOVEA_DISTANCE_TENSORS)
    static void plan(const Planning& planning) noexcept;
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept {
        return b.attention.position == Position::disentangled;
    }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept { return macs_of(keys); }
};

/// What the inputs of one layer's matrices are multiplied by, and in layer 0 that of its stack's output head.
struct ColumnTensors {
    FOVEA_KEPT(FOVEA_COLUMN_TENSORS)
    [[nodiscard]] static constexpr bool needed(const Stack& s, const Block& b) noexcept {
        return s.output_columns || b.column_scales;
    }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept { return 0; }
};

/// What a layer does with what tokens give it, and in layer 0 what makes that of all layers; the rest of Part::layer_inputs.
struct InputTensors {
    FOVEA_KEPT(FOVEA_INPUT_TENSORS)
    static void plan(const Planning& planning) noexcept;
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept { return has_layer_inputs(b); }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept { return macs_of(map, gate, output); }
};

/// Those of a gate of attention's output, and of xIELU.
struct GateTensors {
    FOVEA_KEPT(FOVEA_GATE_TENSORS)
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept {
        return b.attention.output_gate != OutputGate::none || b.feed.xielu;
    }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept { return macs_of(gate); }
};

/// Those of a recurrent part.
struct RecurrentTensors {
    FOVEA_KEPT(FOVEA_RECURRENT_TENSORS)
    static void plan(const Planning& planning) noexcept;
    [[nodiscard]] static constexpr bool needed(const Stack&, const Block& b) noexcept { return b.recurrent; }
    [[nodiscard]] constexpr std::uint64_t macs(const Block&) const noexcept {
        return macs_of(query, key, value, gate, step, rate, output, step_down, gate_down);
    }
};

/// Those of one map of a stack's head.
struct HeadTensors {
    FOVEA_KEPT(FOVEA_HEAD_TENSORS)
    static void plan(const Planning& planning) noexcept;
};

/// Those before the layers of a stack that hears. `filters` is for who makes the frames.
struct SoundTensors {
    FOVEA_KEPT(FOVEA_SOUND_TENSORS)
    static void plan(const Planning& planning) noexcept;
    /// The first convolution makes each of a row's two frames.
    [[nodiscard]] constexpr std::uint64_t macs() const noexcept { return 2 * macs_of(first) + macs_of(second); }
};

#undef FOVEA_KEPT
#undef FOVEA_FIND
#undef FOVEA_FIELD

/// One layer's tensors, and which of its stack's blocks it is. Those of attention to a memory are kept apart, where
/// there is one: see WorkspaceState::cross.
struct Layer {
    AttentionTensors self;
    FeedForwardTensors feed_forward;
    std::uint32_t block = 0;
    std::uint32_t reserved = 0;

    static void plan(const Planning& planning) noexcept;
};
static_assert(sizeof(Matrix) == 32 && alignof(Matrix) == 8 &&
              sizeof(Layer) == 368);  // everywhere, and so are all others

/// Layers of both stacks, where any of their blocks needs T; else 0.
template<class T>
[[nodiscard]] std::uint64_t n_layers_with(const Config& config) noexcept {
    for (const Stack* s : {&config.encoder, &config.decoder})
        for (const Block& b : s->used_blocks())
            if (T::needed(*s, b)) return n_layers_of(config);
    return 0;
}

/// What a stack has beside its layers. `output` is the output head, maybe the embedding table itself.
struct StackTensors {
#define FOVEA_OF_STACK(field, role, number, layout, ...) kept::layout role{};
#define FOVEA_OF_BLOCKS(field, role, number, layout, ...) kept::layout role[kMaxBlocks]{};
    FOVEA_STACK_TENSORS(FOVEA_OF_STACK)
    FOVEA_BLOCK_TENSORS(FOVEA_OF_BLOCKS)
    FOVEA_EMBEDDING_TENSORS(FOVEA_OF_STACK)
#undef FOVEA_OF_STACK
#undef FOVEA_OF_BLOCKS
    std::uint64_t macs_per_row = 0;  // multiplications by weights, without the output head
};

/// Makes a part's tensors at `place`.
template<class T>
T& find_to(T* place, const Finder& at) noexcept {
    T tensors;
    tensors.find(at);
    return *new (place) T(tensors);
}

/// Finds a part's tensors of a stack's layers, which go to `layers` [n_layers], and adds to `t` what they multiply.
template<class T>
void find_layers(const Model& model, StackIndex index, T* layers, StackTensors& t) noexcept {
    const Stack& stack = stack_of(model.config(), index);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        t.macs_per_row += find_to(layers + i, {model, index, i}).macs(stack.block(i));
}

/// The tensors of a stack, and those of its layers, which go to `layers` [n_layers].
[[nodiscard]] StackTensors find_stack(const Model& model, StackIndex index, Layer* layers) noexcept;
/// Those of the decoder's attention to a memory, which go to `cross` [n_layers], and what a row multiplies by.
[[nodiscard]] std::uint64_t find_cross(const Model& model, AttentionTensors* cross) noexcept;

}  // namespace fovea
