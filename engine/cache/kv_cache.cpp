// Pages: how they are laid out, taken, shared, copied and given back.
#include "engine/cache/kv_cache.h"

#include <new>

#include "engine/model/kind.h"
#include "engine/model/model.h"

namespace fovea {
namespace {

[[nodiscard]] std::uint32_t pages_of(const PoolState& pool, std::uint32_t n_positions) noexcept {
    return n_positions / pool.limits.page_len + (n_positions % pool.limits.page_len != 0);
}

/// The panels of `from` that hold its first n_positions positions, of every layer and head.
void copy_page(const PoolState& pool, std::uint32_t from, std::uint32_t to, std::uint32_t n_positions) noexcept {
    const auto page = [&](const std::uint32_t& number) -> KvPages {
        return {.pages = pool.pages,
                .table = &number,
                .places = pool.places,
                .page_bytes = pool.page_bytes,
                .page_len = pool.limits.page_len,
                .type = pool.limits.kv_type,
                .rank = rank_of(pool.limits)};
    };
    const KvPages pages[] = {page(from), page(to)};
    const std::uint64_t n_panels = (n_positions + kLanes - 1) / kLanes;
    for_each_head(pool, false, [&](std::uint32_t layer, const Block& b, std::uint32_t head) {
        for (const HeadPanels& panels : {pages[0].keys(b, layer, head), pages[0].values(b, layer, head)})
            std::memcpy(pages[1].panel(panels, 0), pages[0].panel(panels, 0),
                        static_cast<std::size_t>(n_panels * panels.panel_bytes));
    });
    if (has_positions(pool))
        std::memcpy(&pages[1].next_position(0), &pages[0].next_position(0), n_positions * sizeof(std::uint32_t));
}

[[nodiscard]] std::uint32_t take_page(PoolState& pool) noexcept {
    const std::uint32_t page = pool.free_pages[--pool.n_free];
    pool.n_users[page] = 1;
    return page;
}

}  // namespace

std::uint64_t key_cache_bytes(const Block& b, const PoolLimits& limits) noexcept {
    const std::uint64_t n_panels =
        std::uint64_t{RankHeads(b.attention, rank_of(limits)).n_kv} * limits.page_len / kLanes;
    return round_up(n_panels * key_panel_bytes(limits.kv_type, b.attention.head_dim), 64);
}

std::uint64_t value_cache_bytes(const Block& b, const PoolLimits& limits) noexcept {
    const std::uint64_t n_panels =
        std::uint64_t{RankHeads(b.attention, rank_of(limits)).n_kv} * limits.page_len / kLanes;
    return round_up(n_panels * value_panel_bytes(limits.kv_type, b.attention.value_head_dim), 64);
}

PageBytes lay_out_page(const Stack& stack, const PoolLimits& limits, LayerPlace* places) noexcept {
    const bool memory = limits.memory;
    const UnitShare own = layers_of(limits, stack.n_layers);
    PageBytes bytes;
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        if (places) {
            const std::uint32_t of = has(Part::layer_inputs) && !memory ? key_layer(stack, layer) : layer;
            places[layer] = of == layer ? LayerPlace{bytes.keys, bytes.values} : places[of];
        }
        if (!is_cached(stack.block(layer), memory) || !own.contains(layer)) continue;
        bytes.keys += key_cache_bytes(stack.block(layer), limits);
        bytes.values += value_cache_bytes(stack.block(layer), limits);
    }
    if (places)
        for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) places[layer].values += bytes.keys;
    if (!memory && has_planes(stack)) bytes.values += limits.page_len * std::uint64_t{4};
    return bytes;
}

PoolMap lay_out_pool(const Config& config, const PoolLimits& limits) noexcept {
    PoolMap map;
    const auto take = [&](std::uint64_t& offset, std::uint64_t bytes) {
        offset = map.bytes;
        map.bytes += round_up(bytes, kArenaAlignment);
    };
    const PageBytes page = lay_out_page(config.decoder, limits, nullptr);
    map.page_bytes = page.keys + page.values;
    map.max_pages = (limits.max_kv_len - 1) / limits.page_len + 1;
    take(map.state, kPoolStateBytes);
    take(map.places, config.decoder.n_layers * sizeof(LayerPlace));
    take(map.slots, limits.max_sequences * sizeof(CacheSlot));
    take(map.tables, std::uint64_t{limits.max_sequences} * map.max_pages * 4);
    take(map.n_users, std::uint64_t{limits.n_pages} * 4);
    take(map.free_pages, std::uint64_t{limits.n_pages} * 4);
    return map;
}

PoolState* start_pool(const Model* model, const PoolLimits& limits, const PoolMap& map, std::byte* arena,
                      std::byte* pages) noexcept {
    auto* pool = new (arena + map.state) PoolState;
    const auto words = [&](std::uint64_t at) { return reinterpret_cast<std::uint32_t*>(arena + at); };
    pool->model = model;
    pool->limits = limits;
    pool->pages = pages;
    pool->places = reinterpret_cast<LayerPlace*>(arena + map.places);
    pool->slots = reinterpret_cast<CacheSlot*>(arena + map.slots);
    pool->tables = words(map.tables);
    pool->n_users = words(map.n_users);
    pool->free_pages = words(map.free_pages);
    pool->page_bytes = map.page_bytes;
    pool->max_pages = map.max_pages;
    pool->n_free = limits.n_pages;
    lay_out_page(model->config().decoder, limits, pool->places);
    for (std::uint32_t i = 0; i < limits.max_sequences; ++i) new (pool->slots + i) CacheSlot;
    for (std::uint32_t i = 0; i < limits.n_pages; ++i) {
        pool->n_users[i] = 0;
        pool->free_pages[i] = limits.n_pages - 1 - i;  // so that page 0 goes first
    }
    return pool;
}

void want_pages(PoolState& pool, std::uint32_t slot, std::uint32_t n) noexcept {
    CacheSlot& s = pool.slots[slot];
    pool.n_wanted += pages_of(pool, s.kv_len + n) - s.n_pages;
    if (s.kv_len % pool.limits.page_len == 0) return;
    std::uint32_t& n_users = pool.n_users[pool.table(slot)[s.kv_len / pool.limits.page_len]];
    if (n_users == 1) return;
    // If several forks in one call share the page, and no other cache does, the last of them keeps it.
    --n_users;
    ++pool.n_wanted;
    s.copies_page = true;
}

void forget_want(PoolState& pool, std::uint32_t slot) noexcept {
    CacheSlot& s = pool.slots[slot];
    if (s.copies_page) ++pool.n_users[pool.table(slot)[s.kv_len / pool.limits.page_len]];
    s.copies_page = false;
    pool.n_wanted = 0;
}

void take_pages(PoolState& pool, std::uint32_t slot, std::uint32_t n) noexcept {
    CacheSlot& s = pool.slots[slot];
    std::uint32_t* table = pool.table(slot);
    if (s.copies_page) {
        std::uint32_t& page = table[s.kv_len / pool.limits.page_len];
        const std::uint32_t copy = take_page(pool);
        copy_page(pool, page, copy, s.kv_len % pool.limits.page_len);
        page = copy;
        s.copies_page = false;
    }
    for (const std::uint32_t end = pages_of(pool, s.kv_len + n); s.n_pages < end; ++s.n_pages)
        table[s.n_pages] = take_page(pool);
    pool.n_wanted = 0;
}

void shorten(PoolState& pool, std::uint32_t slot, std::uint32_t kv_len) noexcept {
    CacheSlot& s = pool.slots[slot];
    s.kv_len = kv_len;
    for (const std::uint32_t end = pages_of(pool, kv_len); s.n_pages > end;) {
        const std::uint32_t page = pool.table(slot)[--s.n_pages];
        if (--pool.n_users[page] == 0) pool.free_pages[pool.n_free++] = page;
    }
}

void clear(PoolState& pool, std::uint32_t slot) noexcept {
    shorten(pool, slot, 0);
    if (has_states(pool)) pool.states->rewind(slot, 0);
}

void share_all(PoolState& pool, std::uint32_t from, std::uint32_t to) noexcept {
    const CacheSlot& f = pool.slots[from];
    CacheSlot& t = pool.slots[to];
    t.kv_len = f.kv_len;
    t.n_pages = f.n_pages;
    for (std::uint32_t i = 0; i < f.n_pages; ++i) {
        pool.table(to)[i] = pool.table(from)[i];
        ++pool.n_users[pool.table(to)[i]];
    }
    if (has_states(pool)) pool.states->share(from, to);
}

Status grow(PoolState& pool, std::uint32_t slot, std::uint32_t n) noexcept {
    want_pages(pool, slot, n);
    if (pool.n_wanted > pool.n_free) {
        const Status full{Code::pool_full, "free pages at least", pool.n_wanted, pool.n_free};
        forget_want(pool, slot);
        return full;
    }
    take_pages(pool, slot, n);
    return {};
}

}  // namespace fovea
