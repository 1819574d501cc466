// Where keys and values lie: a sequence's positions in pages, a page's layers, heads and panels.
//
//     page   every layer's keys, then every layer's values
//     layer  [n_kv_heads][page_len / 16] panels of 16 positions: key_panel_bytes, value_panel_bytes
//
// A session's cache is one page of all its positions. What encode and attend keep for one layer is one page too, in which
// sequences start at multiples of 16.
#pragma once
#include <cstring>
#include <type_traits>

#include "engine/cache/states.h"
#include "engine/format/format.h"
#include "engine/kernels/kernels.h"
#include "engine/model/ranks.h"
#include "fovea/cache.h"

namespace fovea {

[[nodiscard]] inline Status no_such_cache() noexcept { return {Code::bad_argument, "cache: not made, or ended", 0, 0}; }

/// Where one layer's keys and values start, in bytes from the page's start.
struct LayerPlace {
    std::uint64_t keys = 0, values = 0;
};

/// Bytes of one layer's keys or values for a page's positions, page_len being a multiple of 16: of a rank's heads.
[[nodiscard]] std::uint64_t key_cache_bytes(const Block& block, const PoolLimits& limits) noexcept;
[[nodiscard]] std::uint64_t value_cache_bytes(const Block& block, const PoolLimits& limits) noexcept;

/// Whether rows of a stack have positions of three dimensions.
[[nodiscard]] constexpr bool has_planes(const Stack& s) noexcept {
    for (std::uint32_t i = 0; has(Part::rows) && i < s.n_blocks; ++i)
        if (s.blocks[i].attention.rope_plane) return true;
    return false;
}

/// A page of all layers of a stack: bytes of keys, then of values, then of next positions, which are counted as values.
struct PageBytes {
    std::uint64_t keys = 0, values = 0;
};
/// Whether a layer has keys and values in a page, of its rows or of a memory.
[[nodiscard]] constexpr bool is_cached(const Block& block, bool memory) noexcept {
    if (has(Part::vectors) && memory) return block.attention.cross_attention;
    return !has(Part::layer_inputs) || !block.attention.shared_keys;
}
/// Lays a pool's page out; `places` [n_layers], or null for the size alone. A layer that shares keys has the place of those.
PageBytes lay_out_page(const Stack& stack, const PoolLimits& limits, LayerPlace* places) noexcept;

/// Whether the second list of frequencies turns rows that have room for `n_positions`.
[[nodiscard]] constexpr bool takes_long_rope(const Stack& s, std::uint32_t n_positions) noexcept {
    return has(Part::block_variants) && s.rope_original_positions && n_positions > s.rope_original_positions;
}

/// One head's keys or values of one layer within a page.
struct HeadPanels {
    std::uint64_t offset = 0;       // of the first panel, from the page's start
    std::uint64_t panel_bytes = 0;  // of 16 positions
};

/// The pages of one sequence, or of all that share one page.
struct KvPages {
    std::byte* pages = nullptr;            // page 0 of the pool
    const std::uint32_t* table = nullptr;  // [number of the sequence's pages] which page of the pool each is
    const LayerPlace* places = nullptr;    // [n_layers]; [1]: all layers use the same place in turn
    std::uint64_t page_bytes = 0;
    std::uint32_t page_len = 0;  // positions
    bool one_place = false;
    Type type = Type::f32;
    // Positions that a sequence may have; 0: it has no cache.
    [[no_unique_address]] std::conditional_t<has(Part::block_variants), std::uint32_t, LeftOut<std::uint32_t>>
        max_kv_len = 0;
    [[no_unique_address]] std::conditional_t<kRanks, RankOf, LeftOut<RankOf>> rank{};  // whose heads it has

    /// A head's place among those that a page has.
    [[nodiscard]] std::uint32_t place_of(const Block& b, std::uint32_t kv_head) const noexcept {
        const RankOf its = rank;
        return its.several() ? kv_head - RankHeads(b.attention, its).first_kv : kv_head;
    }
    [[nodiscard]] HeadPanels keys(const Block& b, std::uint32_t layer, std::uint32_t kv_head) const noexcept {
        const std::uint64_t bytes = key_panel_bytes(type, b.attention.head_dim);
        return {places[one_place ? 0 : layer].keys + place_of(b, kv_head) * std::uint64_t{page_len / kLanes} * bytes,
                bytes};
    }
    [[nodiscard]] HeadPanels values(const Block& b, std::uint32_t layer, std::uint32_t kv_head) const noexcept {
        const std::uint64_t bytes = value_panel_bytes(type, b.attention.value_head_dim);
        return {places[one_place ? 0 : layer].values + place_of(b, kv_head) * std::uint64_t{page_len / kLanes} * bytes,
                bytes};
    }
    /// What lies behind keys and values where positions have three dimensions: panels of 16 u32. Each is the position that follows
    /// those cached up to its own.
    [[nodiscard]] HeadPanels next_positions() const noexcept {
        return {page_bytes - page_len * sizeof(std::uint32_t), kLanes * sizeof(std::uint32_t)};
    }
    [[nodiscard]] std::uint32_t& next_position(std::uint32_t pos) const noexcept {
        return reinterpret_cast<std::uint32_t*>(panel(next_positions(), pos))[pos % kLanes];
    }
    /// The panel of a head that holds position `pos`.
    [[nodiscard]] std::byte* panel(const HeadPanels& head, std::uint32_t pos) const noexcept {
        return pages + table[pos / page_len] * page_bytes + head.offset + pos % page_len / kLanes * head.panel_bytes;
    }
};

/// One cache's place in its pool.
struct CacheSlot {
    std::uint32_t kv_len = 0;
    std::uint32_t n_pages = 0;     // of the table that are in use
    std::uint32_t generation = 0;  // raised when the cache ends, so that old handles are refused
    bool in_use = false, in_call = false, copies_page = false;  // the last two while forward takes pages
    std::uint8_t reserved = 0;
};
static_assert(sizeof(CacheSlot) == 16);

/// What lies at the start of a pool's arena.
struct PoolState {
    const Model* model = nullptr;
    PoolLimits limits;
    std::byte* pages = nullptr;
    LayerPlace* places = nullptr;         // [n_layers]
    CacheSlot* slots = nullptr;           // [max_sequences]
    std::uint32_t* tables = nullptr;      // [max_sequences][max_pages]
    std::uint32_t* n_users = nullptr;     // [n_pages] how many tables name a page
    std::uint32_t* free_pages = nullptr;  // [n_pages], of which the first n_free are free, the last to be taken next
    std::uint64_t page_bytes = 0;
    std::uint32_t max_pages = 0;  // of one sequence
    std::uint32_t n_free = 0;
    std::uint32_t n_wanted = 0;  // pages that a call is about to take
    States* states = nullptr;    // null: the model has no recurrent layers

    [[nodiscard]] std::uint32_t* table(std::uint32_t slot) const noexcept {
        return tables + std::uint64_t{slot} * max_pages;
    }
    [[nodiscard]] KvPages view(std::uint32_t slot) const noexcept {
        return {.pages = pages,
                .table = table(slot),
                .places = places,
                .page_bytes = page_bytes,
                .page_len = limits.page_len,
                .type = limits.kv_type,
                .max_kv_len = limits.max_kv_len,
                .rank = rank_of(limits)};
    }
};
[[nodiscard]] inline bool has_states(const PoolState& pool) noexcept { return has(Part::states) && pool.states; }
/// Whether its pages have next_positions.
[[nodiscard]] inline bool has_positions(const PoolState& pool) noexcept {
    return has(Part::rows) && !pool.limits.memory && has_planes(pool.model->config().decoder);
}
/// Calls visit(layer, Block, kv_head) for each head whose keys and values a page holds, or of all ranks' pages, in the order in
/// which they lie there.
template<class Visit>
void for_each_head(const PoolState& pool, bool of_all_ranks, Visit&& visit) noexcept {
    const Stack& stack = pool.model->config().decoder;
    const UnitShare own = layers_of(pool.limits, stack.n_layers);
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        const Block& b = stack.block(layer);
        if (!is_cached(b, pool.limits.memory) || !(of_all_ranks || own.contains(layer))) continue;
        const RankHeads those(b.attention, of_all_ranks ? RankOf{} : rank_of(pool.limits));
        for (std::uint32_t head = those.first_kv; head < those.first_kv + those.n_kv; ++head) visit(layer, b, head);
    }
}

inline constexpr std::uint64_t kPoolStateBytes = 128;
static_assert(sizeof(PoolState) <= kPoolStateBytes);

/// The parts of a pool's tables, in bytes from their start; each a multiple of 64.
struct PoolMap {
    std::uint64_t state = 0, places = 0, slots = 0, tables = 0, n_users = 0, free_pages = 0, states = 0;
    std::uint64_t page_bytes = 0, state_bytes = 0, bytes = 0;
    std::uint32_t max_pages = 0;
};
/// `limits` has no zeros left.
[[nodiscard]] PoolMap lay_out_pool(const Config& config, const PoolLimits& limits) noexcept;
/// Makes the pool: its tables at `arena`, its pages at `pages`.
PoolState* start_pool(const Model* model, const PoolLimits& limits, const PoolMap& map, std::byte* arena,
                      std::byte* pages) noexcept;

/// Both with states of state_bytes each, see engine/model/states.h; 0: none. Inline, so that builds without states have nothing
/// of it.
[[nodiscard]] inline PoolMap lay_out_pool(const Config& config, const PoolLimits& limits,
                                          std::uint64_t state_bytes) noexcept {
    PoolMap map = lay_out_pool(config, limits);
    if (!has(Part::states) || !state_bytes) return map;
    map.state_bytes = state_bytes;
    map.states = map.bytes;
    map.bytes += lay_out_states(limits.max_sequences, limits.max_marks, limits.n_states).bytes;
    return map;
}
inline PoolState* start_pool(const Model* model, const PoolLimits& limits, const PoolMap& map, std::byte* arena,
                             std::byte* pages, std::byte* states) noexcept {
    PoolState* pool = start_pool(model, limits, map, arena, pages);
    if (has(Part::states) && map.state_bytes)
        pool->states = start_states(arena + map.states, states, limits.max_sequences, limits.max_marks, limits.n_states,
                                    map.state_bytes);
    return pool;
}

/// make_pool_plan and make_pool for states of any size, a multiple of 64; 0: none.
[[nodiscard]] Status plan_pool(const Config& config, const PoolLimits& limits, std::uint64_t state_bytes,
                               PoolPlan& plan) noexcept;  // run/plan.cpp
[[nodiscard]] Status make_pool(const Model& model, const PoolLimits& limits, std::uint64_t state_bytes,
                               std::span<std::byte> arena, CachePool& pool) noexcept;

/// Takes n positions for a cache that is about to grow: in two steps, so that a call with many caches takes all or nothing.
/// First want_pages for each, which counts what is missing in n_wanted, then for each either take_pages, which also
/// copies a shared page that is about to be written to, or forget_want.
void want_pages(PoolState& pool, std::uint32_t slot, std::uint32_t n) noexcept;
void take_pages(PoolState& pool, std::uint32_t slot, std::uint32_t n) noexcept;
void forget_want(PoolState& pool, std::uint32_t slot) noexcept;
/// Gives back the pages that hold no position below kv_len, which becomes the cache's.
void shorten(PoolState& pool, std::uint32_t slot, std::uint32_t kv_len) noexcept;

/// Gives back all that a cache holds, its states too.
void clear(PoolState& pool, std::uint32_t slot) noexcept;
/// `to`, which holds nothing, shares all of `from`'s pages and states.
void share_all(PoolState& pool, std::uint32_t from, std::uint32_t to) noexcept;

/// All of want_pages and take_pages for one cache. Errors, nothing changed: pool_full.
[[nodiscard]] Status grow(PoolState& pool, std::uint32_t slot, std::uint32_t n) noexcept;

/// Takes pages of n caches of one call, cache(i) for n_new(i) positions, and for each a state to write: of all or of none. Errors, nothing changed:
/// bad_argument (one comes twice), pool_full.
[[nodiscard]] Status take_all_pages(std::size_t n, const auto& cache, const auto& n_new) noexcept;

struct CacheAccess {
    [[nodiscard]] static PoolState* pool(const CachePool& pool) noexcept { return pool.state_; }
    static void set(CachePool& pool, PoolState* state) noexcept { pool.state_ = state; }
    [[nodiscard]] static PoolState* pool(const Cache& cache) noexcept { return cache.pool_; }
    [[nodiscard]] static std::uint32_t slot(const Cache& cache) noexcept { return cache.slot_; }
    [[nodiscard]] static CacheSlot& state(const Cache& cache) noexcept { return cache.pool_->slots[cache.slot_]; }
    [[nodiscard]] static Cache make(PoolState* pool, std::uint32_t slot) noexcept {
        Cache cache;
        cache.pool_ = pool;
        cache.slot_ = slot;
        cache.generation_ = pool->slots[slot].generation;
        return cache;
    }
};

Status take_all_pages(std::size_t n, const auto& cache, const auto& n_new) noexcept {
    std::size_t n_seen = 0;
    Status status;
    for (; n_seen < n && status.ok(); ++n_seen) {
        const Cache its = cache(n_seen);
        CacheSlot& slot = CacheAccess::state(its);
        if (slot.in_call) {
            status = {Code::bad_argument, "caches of one call: one comes twice", 0, 0};
            break;
        }
        slot.in_call = true;
        PoolState& pool = *CacheAccess::pool(its);
        want_pages(pool, CacheAccess::slot(its), n_new(n_seen));
        if (has_states(pool)) ++pool.states->n_wanted;
    }
    for (std::size_t i = 0; i < n_seen && status.ok(); ++i) {
        const PoolState& pool = *CacheAccess::pool(cache(i));
        if (pool.n_wanted > pool.n_free) status = {Code::pool_full, "free pages at least", pool.n_wanted, pool.n_free};
        if (status.ok() && has_states(pool) && pool.states->n_wanted > pool.states->n_free)
            status = {Code::pool_full, "free states at least", pool.states->n_wanted, pool.states->n_free};
    }
    for (std::size_t i = 0; i < n_seen; ++i) {
        const Cache its = cache(i);
        PoolState& pool = *CacheAccess::pool(its);
        const std::uint32_t slot = CacheAccess::slot(its);
        pool.slots[slot].in_call = false;
        if (has_states(pool)) {
            pool.states->n_wanted = 0;
            if (status.ok()) pool.states->take(slot);
        }
        if (status.ok())
            take_pages(pool, slot, n_new(i));
        else
            forget_want(pool, slot);
    }
    return status;
}

}  // namespace fovea
