// A model's keys and values of a text, for every layer, in pages that sequences can share.
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

#include "fovea/export.h"
#include "fovea/model.h"
#include "fovea/plan.h"
#include "fovea/status.h"

namespace fovea FOVEA_API {

struct PoolState;  // lives at the start of the pool's arena; engine/cache/kv_cache.h

/// A handle to a pool in the caller's arena; trivially copyable. There is no destructor: release the arena.
class CachePool {
public:
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
    [[nodiscard]] std::uint32_t n_free_pages() const noexcept;      ///< pages that no cache holds; 0 before make_pool
    [[nodiscard]] std::uint32_t n_free_sequences() const noexcept;  ///< caches that make_cache can still make

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

/// `to` becomes a new cache of the same pool that holds what `from` holds. Time and memory: a table, no page.
/// Errors, nothing changed: bad_argument (`from` not valid), pool_full.
[[nodiscard]] Status fork_cache(const Cache& from, Cache& to) noexcept;

/// Gives the cache's pages back, as far as no other cache shares them. Errors: bad_argument (not valid).
Status end_cache(Cache& cache) noexcept;

/// Forgets every position from kv_len on and gives back the pages that held no other.
/// Errors, nothing changed: bad_argument (not valid, or it has fewer positions than kv_len).
[[nodiscard]] Status rewind(Cache& cache, std::uint32_t kv_len) noexcept;

/// Exact bytes that save_cache writes at the present kv_len; 0 if not valid.
[[nodiscard]] std::uint64_t cache_bytes(const Cache& cache) noexcept;

/// Writes the positions, keys and values, a checksum, and what model and cache they belong to. The bytes depend on no
/// page, capacity, number of threads or instruction set, and may be unaligned; they are those of a saved session.
/// Errors, `written` unchanged: bad_argument (not valid), buffer_too_small (nothing is written then).
[[nodiscard]] Status save_cache(const Cache& cache, std::span<std::byte> out, std::size_t& written) noexcept;

/// The cache becomes what the saved one was, whatever it held: what forward computes from here on is the same in every
/// bit. `saved` may hold any bytes at all; whether they are what save_cache wrote is checked before the first change. The
/// checksum finds damage; it does not tell who wrote the bytes.
/// Errors, nothing changed: bad_argument (not valid), truncated, bad_shape (too long), version_unsupported,
/// checksum_mismatch, session_mismatch (not a saved cache, or one of another model, cache type or numerics version),
/// context_full (no room), pool_full (no pages).
[[nodiscard]] Status restore_cache(Cache& cache, std::span<const std::byte> saved) noexcept;

/// `to` becomes what `from`, maybe a cache of another pool, is; see fork_cache for the same pool.
/// Errors, `to` unchanged: bad_argument, session_mismatch, context_full, pool_full.
[[nodiscard]] Status copy_cache(const Cache& from, Cache& to) noexcept;

}  // namespace FOVEA_API
