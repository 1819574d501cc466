// Where everything lies in a session's arena.
#pragma once
#include "../model/format.h"
#include "fovea/session.h"
#include "../kernels/kernels.h"

namespace fovea {

/// Where a part of the arena starts, in bytes: a multiple of 64.
using Stretch = std::uint64_t;

/// The arena, laid out. Rows are float32 with strides in elements, multiples of 16, so that each starts on a cache
/// line.
struct ArenaMap {
    Stretch state, team, layers;
    Stretch sequences;  // [2][max_sequences] of Sequence   a stack's own, and those of its attention to the memory
    Stretch memory;     // [max_batch][hidden_stride]     the encoder's vectors, for the decoder
    Stretch hidden;     // [max_batch][hidden_stride]     the residual stream
    Stretch projected;  // [max_rows][projected_stride]   query, key, value rows side by side
    Stretch attended;   // [max_batch][attended_stride]   merged heads
    Stretch inner;      // [max_batch][inner_stride]      the feed-forward part's hidden layer
    Stretch operand;    // max_rows·operand_row_bytes     rows packed for a matmul, shared by the team
    Stretch rotations;  // [n_blocks][max_batch][2][rotation_stride]  cosines, then sines
    Stretch partials;   // [n_heads][n_chunks][partial_stride]        one token's attention, chunk by chunk
    Stretch scratch;    // [n_threads][scratch_stride]    each member's own rows
    Stretch keys;       // per layer [n_kv_heads][capacity / 16] of panel_bytes; one layer's for all but for decoding
    Stretch values;     // per layer [n_kv_heads][capacity / 16] of value_panel_bytes

    std::uint64_t hidden_stride = 0, projected_stride = 0, attended_stride = 0, inner_stride = 0;
    std::uint64_t operand_row_bytes = 0, rotation_stride = 0, partial_stride = 0, scratch_stride = 0;
    std::uint64_t capacity = 0;  // positions in whole panels: of max_kv_len, or of every sequence's keys
    std::uint64_t max_rows = 0;  // max_batch or, where that is more, max_memory
    std::uint32_t n_chunks = 0;
};

/// What a model is run by.
enum class Kind : std::uint8_t { decode, encode, attend };
[[nodiscard]] Kind kind_of(const Config& config) noexcept;
/// The stack that is run, or runs last.
[[nodiscard]] inline StackIndex last_stack(const Config& config) noexcept {
    return config.decoder.n_layers ? StackIndex::decoder : StackIndex::encoder;
}
[[nodiscard]] inline const Stack& stack_of(const Config& config, StackIndex index) noexcept {
    return index == StackIndex::encoder ? config.encoder : config.decoder;
}

/// Floats that a task's query rows take at most, packed for a cache of any type.
[[nodiscard]] constexpr std::uint64_t query_floats(std::uint64_t head_dim) noexcept {
    const std::uint64_t wide = operand_bytes(Type::f32, kRowBlock, head_dim);
    const std::uint64_t quantized = operand_bytes(Type::q8, kRowBlock, head_dim);
    return round_up((wide > quantized ? wide : quantized) / 4, kLanes);
}

/// Bytes of one layer's keys and values in the cache.
[[nodiscard]] std::uint64_t key_cache_bytes(const Block& block, const ArenaMap& map, Type type) noexcept;
[[nodiscard]] std::uint64_t value_cache_bytes(const Block& block, const ArenaMap& map, Type type) noexcept;

/// make_plan, with what a session needs beside the plan.
[[nodiscard]] Status lay_out(const Config& config, const Limits& limits, ArenaMap& map, Plan& plan) noexcept;

}  // namespace fovea
