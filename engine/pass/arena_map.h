// Where everything lies in the arena of a workspace, and of a session, which is a workspace and a cache.
#pragma once
#include "engine/cache/kv_cache.h"
#include "engine/format/format.h"
#include "engine/kernels/kernels.h"
#include "fovea/plan.h"

namespace fovea {

/// Where a part of the arena starts, in bytes: a multiple of 64.
using ArenaOffset = std::uint64_t;

/// The arena, laid out. Rows are float32 with strides in elements, multiples of 16, so that each starts on a cache
/// line. Made with {}, all zero: a constructor of its own would take 150 bytes of a board's flash.
struct ArenaMap {
    ArenaOffset state, team, layers;
    ArenaOffset cross;      // [n_layers] of AttentionTensors: the decoder's, to a memory
    ArenaOffset head;       // [n_head_maps] of HeadTensors
    ArenaOffset experts;    // [layers] of ExpertTensors, where there are any
    ArenaOffset routes;     // of RouteLists
    ArenaOffset adapters;   // [max_adapters] of AdapterUse, then [max_adapters][layers] of AdapterTensors
    ArenaOffset low;        // [max_rows][low_stride]         what adapters' first matrices leave, side by side
    ArenaOffset raw;        // [max_batch][raw_stride]        gates and ups before their activation
    ArenaOffset sequences;  // [2][max_sequences] of Sequence   a stack's own, and those of its attention to the memory
    ArenaOffset steps;      // of StepLists: what a pass of several steps knows of each, and of each row
    ArenaOffset pool;       // a session's cache, without its page: see PoolMap
    ArenaOffset memory;     // [max_batch][hidden_stride]     the encoder's vectors, for the decoder
    /// [max_batch][hidden_stride]: the residual stream. Behind it, [max_batch][input_stride]: what tokens give each layer.
    ArenaOffset hidden;
    ArenaOffset projected;  // [max_rows][projected_stride]   query, key, value rows side by side
    ArenaOffset attended;   // [max_batch][attended_stride]   merged heads
    ArenaOffset inner;      // [max_batch][inner_stride]      the feed-forward part's hidden layer
    ArenaOffset operand;    // max_rows·operand_row_bytes     rows packed for a matmul, shared by the team
    ArenaOffset rotations;  // [n_blocks][max_batch][2][rotation_stride]  cosines, then sines
    ArenaOffset distances;  // [n_blocks][max heads][distance_reach + max_batch]  relative positions, see position.cpp
    ArenaOffset partials;   // [n_heads][n_chunks][partial_stride]        few rows' attention, chunk by chunk
    ArenaOffset scratch;    // [n_threads][scratch_stride]    each member's own rows
    ArenaOffset keys, values;  // a session's page; encode, attend: one layer's at a time, of all sequences

    std::uint64_t hidden_stride, projected_stride, attended_stride, inner_stride;
    std::uint64_t low_stride, raw_stride;
    std::uint64_t operand_row_bytes, rotation_stride, partial_stride, scratch_stride;
    std::uint64_t capacity;    // positions in whole panels: of max_kv_len, or of every sequence's keys
    std::uint64_t n_partials;  // that the part has room for
    std::uint64_t max_rows;    // max_batch or, where that is more, max_key_rows
    std::uint32_t n_chunks;
    std::uint32_t distance_heads;  // of the block with relative positions that has most
    std::uint32_t distance_reach;  // keys up to a query, its own among them: max_batch, or more in a cache
    // Each the most of any block; the last is how many experts a row uses, the shared one too.
    std::uint32_t n_experts, n_experts_used, n_row_batches;

    /// Where what tokens give each layer starts, behind the stream.
    [[nodiscard]] ArenaOffset inputs(const Limits& limits) const noexcept {
        return hidden + round_up(limits.max_batch * hidden_stride * 4, kArenaAlignment);
    }

    /// Rows there are for experts: of `inner`, `projected` and `operand`. At least max_batch, and room for a row's experts.
    [[nodiscard]] std::uint64_t slots(const Limits& limits) const noexcept {
        return has(Part::experts) && n_row_batches > limits.max_batch ? n_row_batches : limits.max_batch;
    }
};

/// Elements of a row of what tokens give each layer of a stack, side by side.
[[nodiscard]] constexpr std::uint64_t input_stride(const Stack& s) noexcept {
    return round_up(std::uint64_t{s.n_layers} * s.blocks[0].layer_input_width, kLanes);
}

/// Floats that a task's query rows take at most, packed for a cache of any type.
[[nodiscard]] constexpr std::uint64_t query_floats(std::uint64_t head_dim) noexcept {
    const std::uint64_t wide = operand_bytes(Type::f32, kRowBlock, head_dim);
    const std::uint64_t quantized = operand_bytes(Type::q8, kRowBlock, head_dim);
    return round_up((wide > quantized ? wide : quantized) / 4, kLanes);
}

/// Floats of one of the two running states of attention that a member has at a time.
[[nodiscard]] constexpr std::uint64_t state_floats(std::uint64_t value_stride) noexcept {
    return kRowBlock * value_stride + 2 * kLanes;
}

/// What else is in a member's scratch while it attends by disentangled positions, in floats behind the query and both states: the
/// buckets of a task's distances, its queries' products with all buckets, some keys' with those of some, what is packed for
/// either, and what each row's scores get.
struct DistanceRows {
    std::uint64_t n_buckets, n_keys;  // of a row, in whole panels
    std::uint64_t buckets, by_query, by_key, operand, scores, end;

    constexpr DistanceRows(const Block& b, std::uint64_t max_keys) noexcept
        : n_buckets(bucket_rows(b)), n_keys(round_up(max_keys, kLanes)) {
        buckets = query_floats(b.head_dim) + 2 * state_floats(round_up(b.value_head_dim, kLanes));
        by_query = buckets + n_keys + kLanes;
        by_key = by_query + kRowBlock * n_buckets;
        operand = by_key + kRowBlock * n_buckets;
        scores = operand + query_floats(b.head_dim);
        end = scores + kRowBlock * n_keys;
    }
};

/// A member's scratch while it makes the operand of a single row, in floats: the row itself, normed, then its groups or its
/// broad groups. Experts may want both of a row of the stream at once, so that of as many columns both have a place.
struct OwnRow {
    std::uint64_t groups, broad_groups, end;

    constexpr OwnRow(std::uint64_t hidden_stride, std::uint64_t n_cols) noexcept {
        const std::uint64_t packed = round_up(operand_bytes(Type::q8, 1, n_cols), 64) / 4;
        groups = hidden_stride;
        broad_groups = groups + (n_cols <= hidden_stride ? packed : 0);
        end = broad_groups + packed;
    }
};

/// What a pass of several steps lists in the arena; one of a single step needs none of it.
struct StepLists {
    static constexpr std::uint64_t kPagesBytes = 64;  // of a KvPages, whatever a pointer's size
    static_assert(sizeof(KvPages) <= kPagesBytes);
    ArenaOffset pages = 0;   // [max_sequences] of KvPages; as many of memories, where there are any
    ArenaOffset tokens = 0;  // [max_batch] of Token
    ArenaOffset rows = 0;    // [2][max_batch] of float*: rows that logits are made of, and where they go
    std::uint64_t bytes = 0;

    StepLists(ArenaOffset start, const Limits& limits, bool memory) noexcept {
        if (limits.max_sequences < 2) return;
        pages = start;
        tokens = pages + (memory ? 2 : 1) * limits.max_sequences * kPagesBytes;
        rows = tokens + round_up(limits.max_batch * std::uint64_t{4}, 64);
        bytes = rows + 2 * std::uint64_t{limits.max_batch} * 8 - start;
    }
};

}  // namespace fovea
