// The public functions of pools and caches.
#include "fovea/cache.h"

#include <new>

#include "engine/cache/kv_cache.h"
#include "engine/model/arena.h"
#include "engine/model/model.h"
#include "engine/model/states.h"

namespace fovea {
Status make_pool(const Model& model, const PoolLimits& limits, std::span<std::byte> arena, CachePool& pool) noexcept {
    return make_pool(model, limits, limits.memory ? 0 : state_bytes(model.config().decoder), arena, pool);
}

Status make_pool(const Model& model, const PoolLimits& limits, std::uint64_t state_bytes, std::span<std::byte> arena,
                 CachePool& pool) noexcept {
    PoolPlan plan;
    if (Status status = plan_pool(model.config(), limits, state_bytes, plan); !status.ok()) return status;
    if (Status status = check_arena(arena, plan.arena_bytes); !status.ok()) return status;
    const PoolMap map = lay_out_pool(model.config(), plan.limits, state_bytes);
    const Model kept = model;  // which may lie in the arena
    const Model* own = new (arena.data() + plan.parts[1].offset) Model(kept);
    CacheAccess::set(pool, start_pool(own, plan.limits, map, arena.data(), arena.data() + plan.parts[2].offset,
                                      arena.data() + plan.parts[3].offset));
    return {};
}

Status make_cache(CachePool& pool, Cache& cache) noexcept {
    PoolState* state = CacheAccess::pool(pool);
    if (!state) return {Code::bad_argument, "pool: not made", 0, 0};
    for (std::uint32_t i = 0; i < state->limits.max_sequences; ++i) {
        if (state->slots[i].in_use) continue;
        state->slots[i].in_use = true;
        cache = CacheAccess::make(state, i);
        return {};
    }
    return {Code::pool_full, "sequences at most", state->limits.max_sequences,
            std::uint64_t{state->limits.max_sequences} + 1};
}

Status fork_cache(const Cache& from, Cache& to) noexcept {
    if (!from.valid()) return no_such_cache();
    CachePool pool;
    CacheAccess::set(pool, CacheAccess::pool(from));
    Cache made;
    if (Status status = make_cache(pool, made); !status.ok()) return status;
    share_all(*CacheAccess::pool(from), CacheAccess::slot(from), CacheAccess::slot(made));
    to = made;
    return {};
}

Status end_cache(Cache& cache) noexcept {
    if (!cache.valid()) return no_such_cache();
    CacheSlot& slot = CacheAccess::state(cache);
    clear(*CacheAccess::pool(cache), CacheAccess::slot(cache));
    slot.in_use = false;
    ++slot.generation;
    return {};
}

Status rewind(Cache& cache, std::uint32_t kv_len, std::uint32_t* reached) noexcept {
    if (!cache.valid()) return no_such_cache();
    const std::uint32_t have = cache.kv_len();
    if (kv_len > have) return {Code::bad_argument, "positions at most", have, kv_len};
    PoolState& pool = *CacheAccess::pool(cache);
    if (has_states(pool)) {
        kv_len = cache.reach(kv_len);
        if (kv_len < have) pool.states->rewind(CacheAccess::slot(cache), kv_len);
    }
    shorten(pool, CacheAccess::slot(cache), kv_len);
    if (reached) *reached = kv_len;
    return {};
}

Status mark(Cache& cache) noexcept {
    if (!cache.valid()) return no_such_cache();
    const PoolState& pool = *CacheAccess::pool(cache);
    return has_states(pool) ? pool.states->mark(CacheAccess::slot(cache), cache.kv_len()) : Status{};
}

Status unmark(Cache& cache, std::uint32_t kv_len) noexcept {
    if (!cache.valid()) return no_such_cache();
    const PoolState& pool = *CacheAccess::pool(cache);
    if (has_states(pool)) pool.states->unmark(CacheAccess::slot(cache), kv_len);
    return {};
}

std::uint32_t CachePool::n_free_pages() const noexcept { return state_ ? state_->n_free : 0; }

std::uint32_t CachePool::n_free_states() const noexcept {
    return state_ && has_states(*state_) ? state_->states->n_free : 0;
}

std::uint32_t CachePool::n_free_sequences() const noexcept {
    if (!state_) return 0;
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < state_->limits.max_sequences; ++i) n += !state_->slots[i].in_use;
    return n;
}

bool Cache::valid() const noexcept {
    if (!pool_) return false;
    const CacheSlot& slot = pool_->slots[slot_];
    return slot.in_use && slot.generation == generation_;
}
std::uint32_t Cache::kv_len() const noexcept { return valid() ? pool_->slots[slot_].kv_len : 0; }
std::uint32_t Cache::max_kv_len() const noexcept { return valid() ? pool_->limits.max_kv_len : 0; }
std::uint32_t Cache::n_pages() const noexcept { return valid() ? pool_->slots[slot_].n_pages : 0; }
std::uint32_t Cache::reach(std::uint32_t kv_len) const noexcept {
    const std::uint32_t have = this->kv_len();
    if (kv_len >= have) return have;
    return has_states(*pool_) ? pool_->states->reach(slot_, kv_len) : kv_len;
}

}  // namespace fovea
