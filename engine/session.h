// What lies at the start of a session's arena.
#pragma once
#include "../platform/team.h"
#include "format.h"
#include "fovea/session.h"
#include "kernels/kernels.h"
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

/// One layer's tensors and its place in the caches. Offsets rather than pointers, so that a plan has the same bytes on
/// 32-bit and 64-bit machines.
struct Layer {
    Matrix query, key, value, output, up, down;
    VectorOffset query_bias = 0, key_bias = 0, value_bias = 0, output_bias = 0, up_bias = 0, down_bias = 0;
    VectorOffset attention_norm = 0, attention_norm_bias = 0, feed_forward_norm = 0, feed_forward_norm_bias = 0;
    VectorOffset query_norm = 0, query_norm_bias = 0, key_norm = 0, key_norm_bias = 0;
    std::uint64_t keys = 0, values = 0;  // from the arena's start
    std::uint32_t block = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(Matrix) == 32 && sizeof(Layer) == 328);

inline constexpr std::uint64_t kSessionStateBytes = 3072;

struct SessionState {
    Model model;
    Limits limits;
    ArenaMap map;
    std::byte* arena = nullptr;
    const Kernels* kernels = nullptr;
    Team* team = nullptr;
    Trace trace;
    std::uint32_t kv_len = 0;
    std::uint64_t macs_per_token = 0;  // multiplications by weights, without the output head
    Matrix output;                     // the output head, maybe the embedding table itself
    const TensorRecord* token_embedding = nullptr;
    const TensorRecord* position_embedding = nullptr;
    VectorOffset embedding_norm = 0, embedding_norm_bias = 0, final_norm = 0, final_norm_bias = 0, output_bias = 0;
    VectorOffset rope_frequencies[kMaxBlocks] = {};

    [[nodiscard]] Layer& layer(std::uint32_t i) const noexcept {
        return reinterpret_cast<Layer*>(arena + map.layers.offset)[i];
    }
    [[nodiscard]] float* floats(const Stretch& stretch) const noexcept {
        return reinterpret_cast<float*>(arena + stretch.offset);
    }
    [[nodiscard]] const std::byte* weights(std::uint64_t offset) const noexcept {
        return model.bytes().data() + offset;
    }
    /// Null where the model has no such vector.
    [[nodiscard]] const float* vector(VectorOffset offset) const noexcept {
        return offset ? reinterpret_cast<const float*>(weights(offset)) : nullptr;
    }
};
static_assert(sizeof(SessionState) <= kSessionStateBytes);

struct SessionAccess {
    [[nodiscard]] static SessionState* state(const Session& session) noexcept { return session.state_; }
    static void set(Session& session, SessionState* state) noexcept { session.state_ = state; }
};

}  // namespace fovea
