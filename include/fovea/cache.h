// What a model remembers of a text: keys and values of every layer, in pages that sequences can share, and where it has
// recurrent layers, their state. Keys and values of a position can be forgotten again; a state cannot be taken back, so that
// rewind returns to positions whose state a mark has kept.
//
//     PoolPlan plan;                                 // 1. the size, before any memory is taken
//     make_pool_plan(model.config(), {.max_sequences = 32, .n_pages = 400}, plan);
//     CachePool pool;                                // 2. the caller's bytes, at least plan.arena_bytes of them
//     make_pool(model, plan.limits, arena, pool);
//     Cache prompt, answer;                          // 3. sequences, as long as there is room
//     make_cache(pool, prompt);
//     ... forward(workspace, ...) fills it; see fovea/workspace.h
//     fork_cache(prompt, answer);                    // shares every page; the first to write copies that page
//
// A pool and its caches are used by one thread at a time. Pools of one model may differ in all their limits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/model.h"
#include "fovea/plan.h"
#include "fovea/status.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

struct PoolState;  // lives at the start of the pool's arena; engine/cache/kv_cache.h

/// A handle to a pool in the caller's arena; trivially copyable. There is no destructor: release the arena.
class CachePool {
public:
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
    [[nodiscard]] std::uint32_t n_free_pages() const noexcept;      ///< pages that no cache holds; 0 before make_pool
    [[nodiscard]] std::uint32_t n_free_sequences() const noexcept;  ///< caches that make_cache can still make
    /// Slots that hold no state; 0 for a model without recurrent layers.
    [[nodiscard]] std::uint32_t n_free_states() const noexcept;

private:
    friend struct CacheAccess;
    PoolState* state_ = nullptr;
};

/// A handle to one sequence's cache; trivially copyable. It stays valid until end_cache; all functions refuse it later.
class Cache {
public:
    [[nodiscard]] bool valid() const noexcept;                ///< made, and not ended
    [[nodiscard]] std::uint32_t kv_len() const noexcept;      ///< positions cached so far; 0 if not valid
    [[nodiscard]] std::uint32_t max_kv_len() const noexcept;  ///< capacity; 0 if not valid
    [[nodiscard]] std::uint32_t n_pages() const noexcept;     ///< pages held, shared ones too
    /// Where rewind(cache, kv_len) would arrive. With more than it has: at what it has. 0 where not valid.
    [[nodiscard]] std::uint32_t reach(std::uint32_t kv_len) const noexcept;

private:
    friend struct CacheAccess;
    PoolState* pool_ = nullptr;
    std::uint32_t slot_ = 0, generation_ = 0;
};

/// Carves `arena` (kArenaAlignment-aligned, at least plan.arena_bytes long) into a pool with no caches. The arena and the
/// model's bytes must outlive it. Errors, `pool` unchanged: those of make_pool_plan, arena_too_small, misaligned.
[[nodiscard]] Status make_pool(const Model& model, const PoolLimits& limits, std::span<std::byte> arena,
                               CachePool& pool) noexcept;

/// An empty cache. It takes a page when there is something to write.
/// Errors, nothing changed: bad_argument (no pool), pool_full (max_sequences exist).
[[nodiscard]] Status make_cache(CachePool& pool, Cache& cache) noexcept;

/// `to` becomes a new cache of the same pool that holds what `from` holds, marks too. Time and memory: a table, no page and
/// no state.
/// Errors, nothing changed: bad_argument (`from` not valid), pool_full.
[[nodiscard]] Status fork_cache(const Cache& from, Cache& to) noexcept;

/// Gives the cache's pages and states back, as far as no other cache shares them. Errors: bad_argument (not valid).
Status end_cache(Cache& cache) noexcept;

/// Forgets positions from the end, and gives back the pages that held no other. The cache then has kv_len positions where
/// the model has keys and values alone or kv_len is 0; where it has recurrent layers, as many as the latest mark at or below
/// kv_len, or none. Marks beyond are forgotten.
///
///   reached  set to the positions there are now; compute those up to kv_len again. Null: not wanted
///
/// Errors, nothing changed: bad_argument (not valid, or fewer positions).
[[nodiscard]] Status rewind(Cache& cache, std::uint32_t kv_len, std::uint32_t* reached = nullptr) noexcept;

/// Keeps the state of the present kv_len, so that rewind returns to it, until it is rewound further, unmarked, restored or
/// ended. The state is held, not copied. Does nothing where rewind reaches every position anyway, and at 0.
/// Errors, nothing changed: bad_argument (not valid), pool_full (max_marks kept already, or no free state to go on with).
[[nodiscard]] Status mark(Cache& cache) noexcept;

/// Gives back the state that a mark at kv_len has kept, if there is one. Errors: bad_argument (not valid).
Status unmark(Cache& cache, std::uint32_t kv_len) noexcept;

/// Exact bytes that save_cache writes at the present kv_len; 0 if not valid.
[[nodiscard]] std::uint64_t cache_bytes(const Cache& cache) noexcept;

/// Writes the positions, keys and values, states with their marks, a checksum, and what model and cache they belong to. The bytes depend on no
/// page, capacity, number of threads or instruction set, and may be unaligned; they are those of a saved session.
/// Errors, `written` unchanged: bad_argument (not valid), buffer_too_small (nothing is written then).
[[nodiscard]] Status save_cache(const Cache& cache, std::span<std::byte> out, std::size_t& written) noexcept;

/// The cache becomes what the saved one was, whatever it held: what forward computes from here on is the same in every
/// bit. `saved` may hold any bytes at all; whether they are what save_cache wrote is checked before the first change. The
/// checksum finds damage; it does not tell who wrote the bytes.
/// Errors, nothing changed: bad_argument (not valid), truncated, bad_shape (too long), version_unsupported,
/// checksum_mismatch, session_mismatch (no saved cache, or of another model, cache type or numerics version),
/// context_full (no room), pool_full (too few pages, states or marks).
[[nodiscard]] Status restore_cache(Cache& cache, std::span<const std::byte> saved) noexcept;

/// `to` becomes what `from`, maybe a cache of another pool, is; see fork_cache for the same pool.
/// Errors, `to` unchanged: bad_argument, session_mismatch, context_full, pool_full.
[[nodiscard]] Status copy_cache(const Cache& from, Cache& to) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
