// Where everything lies in the arena of a workspace, and of a session, which is a workspace and a cache.
#pragma once
#include "engine/cache/kv_cache.h"
#include "engine/format/format.h"
#include "engine/kernels/kernels.h"
#include "engine/model/kind.h"
#include "fovea/plan.h"

namespace fovea {

/// Where a part of the arena starts, in bytes: a multiple of 64.
using ArenaOffset = std::uint64_t;

/// The arena, laid out. Rows are float32 with strides in elements, multiples of 16, so that each starts on a cache
/// line. Made with {}, all zero: a constructor of its own would take 150 bytes of a board's flash.
struct ArenaMap {
#define FOVEA_PART(there, field, ...) ArenaOffset field;
#include "engine/pass/parts.inc"

    std::uint64_t hidden_stride, projected_stride, attended_stride, inner_stride;
    std::uint64_t low_stride, raw_stride, scratch_stride;
    std::uint64_t capacity;  // positions in whole panels: of max_kv_len, or of every sequence's keys
    std::uint32_t rotation_stride, partial_stride;
    std::uint32_t n_partials;      // that the part has room for
    std::uint32_t distance_heads;  // of the block with relative positions that has most
    std::uint32_t distance_reach;  // keys up to a query, its own among them: max_batch, or more in a cache
    // Each the most of any block; the last is how many experts a row uses, the shared one too.
    std::uint32_t n_experts, n_experts_used, n_row_batches;

    /// Rows there are for experts: of `inner`, `projected` and `operand`. At least max_batch, and room for a row's experts.
    [[nodiscard]] std::uint64_t slots(const Limits& limits) const noexcept {
        return has(Part::experts) && n_row_batches > limits.max_batch ? n_row_batches : limits.max_batch;
    }
};

/// The widest of a stack's attention and of what its matrices read.
struct Widest {
    std::uint64_t operand = 0, operand_row_bytes = 0, n_heads = 0, head_dim = 0, value_stride = 0;
    bool rotated = false;
};

/// A stack of a plan that is being made, and what its parts ask for by growing it: strides of rows, and the widest operand.
struct Planning {
    const Stack& stack;
    const Limits& limits;
    Kind kind;
    ArenaMap& map;
    Widest& widest;
};

[[nodiscard]] constexpr std::uint64_t at_least(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a : b; }
/// x becomes the largest of itself and the others.
constexpr void grow_to(auto& x, auto... others) noexcept {
    ((x = static_cast<std::remove_reference_t<decltype(x)>>(at_least(x, others))), ...);
}
/// n elements as a stride.
[[nodiscard]] constexpr std::uint64_t pad(std::uint64_t n) noexcept { return round_up(n, kLanes); }

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

/// A member's scratch while it makes the operand of a single row, in floats: the row itself, normed, then its groups or its
/// broad groups. Experts may want both of a row of the stream at once, so that of as many columns both have a place.
struct OwnRow {
    std::uint64_t groups, broad_groups, end;

    constexpr OwnRow(std::uint64_t hidden_stride, std::uint64_t n_cols) noexcept {
        const std::uint64_t outliers = has(Part::columns) ? kMaxOutliers * sizeof(float) : 0;
        const std::uint64_t packed = round_up(operand_bytes(Type::q8, 1, n_cols) + outliers, 64) / 4;
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
