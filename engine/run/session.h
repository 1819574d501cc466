// What lies at the start of a session's arena.
#pragma once
#include "../../platform/team.h"
#include "../model/format.h"
#include "fovea/session.h"
#include "../kernels/kernels.h"
#include "plan.h"

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

/// One attention's tensors. Offsets rather than pointers, so that a plan has the same bytes on 32-bit and 64-bit
/// machines.
struct AttentionTensors {
    Matrix query, key, value, output;
    VectorOffset query_bias = 0, key_bias = 0, value_bias = 0, output_bias = 0;
    VectorOffset norm = 0, norm_bias = 0;
    VectorOffset query_norm = 0, query_norm_bias = 0, key_norm = 0, key_norm_bias = 0;
    VectorOffset appended_key = 0, appended_value = 0;
};

/// One layer's tensors and its place in the caches.
struct Layer {
    AttentionTensors self, cross;
    Matrix up, down;
    VectorOffset up_bias = 0, down_bias = 0, feed_forward_norm = 0, feed_forward_norm_bias = 0;
    std::uint64_t keys = 0, values = 0;  // from the arena's start
    std::uint32_t block = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(Matrix) == 32 && sizeof(Layer) == 568);

/// What a stack has beside its layers.
struct StackTensors {
    Matrix output;  // the output head, maybe the embedding table itself
    const TensorRecord* token_embedding = nullptr;
    const TensorRecord* position_embedding = nullptr;
    const TensorRecord* type_embedding = nullptr;
    VectorOffset embedding_norm = 0, embedding_norm_bias = 0, final_norm = 0, final_norm_bias = 0, output_bias = 0;
    VectorOffset rope_frequencies[kMaxBlocks] = {};
    std::uint32_t first_layer = 0;   // in the arena's list: the encoder's layers, then the decoder's
    std::uint64_t macs_per_row = 0;  // multiplications by weights, without the output head
};

/// One sequence as an attention sees it: where its rows are, and its keys and values.
struct Sequence {
    std::uint32_t row = 0, n_rows = 0;       // queries, among the pass's rows
    std::uint32_t source = 0, n_source = 0;  // the rows that new keys and values come from
    std::uint32_t pos = 0;                   // keys and values before those
    std::uint32_t n_keys = 0;                // positions that may be seen; appended ones are not counted
    std::uint32_t at = 0;                    // where its caches start, in positions: a multiple of 16
    std::int32_t diagonal = 0;               // with a causal mask query i sees the positions below diagonal + i + 1
};

inline constexpr std::uint64_t kSessionStateBytes = 3584;

struct SessionState {
    Model model;
    Limits limits;
    ArenaMap map;
    std::byte* arena = nullptr;
    const Kernels* kernels = nullptr;
    Team* team = nullptr;
    Trace trace;
    AttentionWeights asked;                     // see set_weights
    const std::atomic<bool>* cancel = nullptr;  // the caller's flag, see set_cancel
    bool cancelled = false;                     // what member 0 saw of it
    std::uint32_t kv_len = 0;
    StackTensors stacks[2];  // by StackIndex

    [[nodiscard]] Layer& layer(std::uint32_t i) const noexcept {
        return reinterpret_cast<Layer*>(arena + map.layers)[i];
    }
    [[nodiscard]] float* floats(Stretch offset) const noexcept { return reinterpret_cast<float*>(arena + offset); }
    [[nodiscard]] const std::byte* weights(std::uint64_t offset) const noexcept {
        return model.bytes().data() + offset;
    }
    /// Null where the model has no such vector.
    [[nodiscard]] const float* vector(VectorOffset offset) const noexcept {
        return offset ? reinterpret_cast<const float*>(weights(offset)) : nullptr;
    }
};
static_assert(sizeof(SessionState) <= kSessionStateBytes);

/// The stack whose layers a request for weights counts.
[[nodiscard]] inline StackIndex weights_stack(const SessionState& s) noexcept {
    const Config& config = s.model.config();
    const bool both = config.encoder.n_layers && config.decoder.n_layers;
    return both && s.asked.in_encoder ? StackIndex::encoder : last_stack(config);
}
/// Whether the weights asked for have room for a call. Overflows nowhere: sizes are of rows that there are.
[[nodiscard]] Status check_weights(const SessionState& s, std::uint64_t n_sequences, std::uint64_t n_queries,
                                   std::uint64_t n_keys) noexcept;  // session.cpp

struct SessionAccess {
    [[nodiscard]] static SessionState* state(const Session& session) noexcept { return session.state_; }
    static void set(Session& session, SessionState* state) noexcept { session.state_ = state; }
};

}  // namespace fovea
