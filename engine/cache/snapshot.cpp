// What a cache remembers, as bytes that outlive it: a header, then of each layer and key-value head the panels in use,
// keys, then values, then states and their marks. docs/format.md says it in words. Pages, capacity, threads and instruction set are not in it.
#include <cstring>

#include "engine/cache/kv_cache.h"
#include "engine/model/states.h"
#include "fovea/checksum.h"
#include "fovea/workspace.h"

namespace fovea {
namespace {

// In kv_type: a memory's keys and values; keys turned by the second list of frequencies.
constexpr std::uint32_t kMemory = 256, kLongRope = 512;

struct SavedHeader {
    std::uint64_t magic = 0x1a564b6165766f46;  // "FoveaKV\x1a"
    std::uint32_t version = 1, numerics_version = kNumericsVersion;
    std::uint32_t fingerprint, kv_type, kv_len;
    std::uint32_t crc = 0;  // CRC-32C of the 28 bytes before it, then of all that follows

    SavedHeader(const PoolState& pool, std::uint32_t n) noexcept
        : fingerprint(pool.model->fingerprint()),
          kv_type(static_cast<std::uint32_t>(pool.limits.kv_type) |
                  (has(Part::vectors) && pool.limits.memory ? kMemory : 0) |
                  (takes_long_rope(pool.model->config().decoder, pool.limits.max_kv_len) ? kLongRope : 0)),
          kv_len(n) {}
};
static_assert(sizeof(SavedHeader) == 32);

/// Panels of one head's keys or values, of positions [pos, pos + 16·n): so many as lie in one page.
struct Run {
    HeadPanels panels;
    std::uint32_t pos, head_dim;
    std::size_t bytes;
    Type type;               // of its elements; next positions are as wide as values of f32
    bool is_value, is_last;  // of its head
    bool is_own;             // it is in this rank's pages
};

/// Calls visit(Run) for each in order. `kv_len` is within the cache's capacity, so that no size overflows.
template<class Visit>
void for_each_run(const PoolState& pool, std::uint32_t kv_len, Visit&& visit) noexcept {
    const KvPages pages = pool.view(0);  // any cache's: heads lie alike in all pages
    const std::uint32_t page_len = pool.limits.page_len;
    const auto runs = [&](Type type, const HeadPanels& panels, std::uint32_t head_dim, bool is_value, bool is_own) {
        for (std::uint32_t pos = 0; pos < kv_len; pos += page_len) {
            const std::uint32_t n = kv_len - pos < page_len ? kv_len - pos : page_len;
            visit(Run{panels, pos, head_dim, static_cast<std::size_t>((n + kLanes - 1) / kLanes * panels.panel_bytes),
                      type, is_value, pos + n == kv_len, is_own});
        }
    };
    const UnitShare own = layers_of(pool.limits, pool.model->config().decoder.n_layers);
    for_each_head(pool, true, [&](std::uint32_t layer, const Block& b, std::uint32_t head) {
        const bool is_own = own.contains(layer) && RankHeads(b.attention, rank_of(pool.limits)).keeps(head);
        for (const bool is_value : {false, true})
            runs(pool.limits.kv_type, is_value ? pages.values(b, layer, head) : pages.keys(b, layer, head),
                 b.attention.head_dim, is_value, is_own);
    });
    if (has_positions(pool)) runs(Type::f32, pages.next_positions(), 1, true, true);
}

/// The run's place in a cache.
[[nodiscard]] std::byte* place(const PoolState& pool, std::uint32_t slot, const Run& run) noexcept {
    return pool.view(slot).panel(run.panels, run.pos);
}

/// Each rank has written its heads' panels; `at` is where the first layer's go. The first of those that
/// keep the same head gives it. False: they cannot be reached.
[[nodiscard]] bool gather_heads(const PoolState& pool, std::uint32_t kv_len, std::byte* at,
                                const Ranks& ranks) noexcept {
    const Stack& stack = pool.model->config().decoder;
    PoolLimits of_rank = pool.limits;
    std::uint64_t ends[kMaxRanks];
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        const Block& b = stack.block(layer);
        if (!is_cached(b, pool.limits.memory)) continue;
        const std::uint64_t panels = (std::uint64_t{kv_len} + kLanes - 1) / kLanes;
        const std::uint64_t of_head = panels * (key_panel_bytes(pool.limits.kv_type, b.attention.head_dim) +
                                                value_panel_bytes(pool.limits.kv_type, b.attention.value_head_dim));
        for (std::uint32_t r = 0; r < ranks.n_ranks; ++r) {
            of_rank.rank = static_cast<std::uint8_t>(r);
            const UnitShare layers = layers_of(of_rank, stack.n_layers);
            const RankHeads its(b.attention, rank_of(of_rank));
            const std::uint32_t end = layers.contains(layer) ? its.first_kv + its.n_kv : b.attention.n_kv_heads;
            ends[r] = layer < layers.end ? end * of_head : 0;  // those of earlier stages have none of it
        }
        if (!ranks.gather(ranks.context, {}, at, {ends, ranks.n_ranks})) return false;
        at += b.attention.n_kv_heads * of_head;
    }
    return true;
}

/// The same of n states that the cache has, each rank's layers being those of its stage.
[[nodiscard]] bool gather_states(const PoolState& pool, std::uint32_t n, std::byte* at, const Ranks& ranks) noexcept {
    const Stack& stack = pool.model->config().decoder;
    PoolLimits of_rank = pool.limits;
    std::uint64_t ends[kMaxRanks];
    for (std::uint32_t r = 0; r < ranks.n_ranks; ++r) {
        of_rank.rank = static_cast<std::uint8_t>(r);
        ends[r] = state_bytes(stack, layers_of(of_rank, stack.n_layers).end);
    }
    for (; n > 0; --n, at += pool.states->state_bytes)
        if (!ranks.gather(ranks.context, {}, at, {ends, ranks.n_ranks})) return false;
    return true;
}

/// Bytes up to the last panel.
[[nodiscard]] std::uint64_t bytes_of_panels(const PoolState& pool, std::uint32_t kv_len) noexcept {
    std::uint64_t bytes = sizeof(SavedHeader);
    for_each_run(pool, kv_len, [&](const Run& run) { bytes += run.bytes; });
    return bytes;
}

/// What follows the panels where there are states: u32 n_marks, u32 [n_marks] their positions, ascending, then the states:
/// each mark's, and the present one unless the last mark is at kv_len.
struct SavedStates {
    std::uint32_t n_marks = 0, n_states = 0;

    [[nodiscard]] std::uint64_t bytes(const States& states) const noexcept {
        return 4 + std::uint64_t{4} * n_marks + n_states * states.state_bytes;
    }
};

[[nodiscard]] SavedStates states_of(const States& states, std::uint32_t slot) noexcept {
    return {states.caches[slot].n_marks, states.n_kept(slot)};
}

[[nodiscard]] std::uint32_t word_at(const std::byte* at) noexcept {
    std::uint32_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

[[nodiscard]] Status check_marks(const States& states, std::uint32_t n_marks) noexcept {
    if (n_marks <= states.max_marks) return {};
    return {Code::pool_full, "marks of a cache at least", n_marks, states.max_marks};
}

/// Reads what says how many there are; `bytes` is what follows the panels.
[[nodiscard]] Status read_states(const States& states, std::span<const std::byte> bytes, std::uint32_t kv_len,
                                 SavedStates& out) noexcept {
    if (bytes.size() < 4) return {Code::truncated, "bytes of a saved session's states", 4, bytes.size()};
    const std::uint32_t n = word_at(bytes.data());
    if (Status status = check_marks(states, n); !status.ok()) return status;
    const std::uint64_t before = 4 + std::uint64_t{4} * n;
    if (bytes.size() < before) return {Code::truncated, "bytes of a saved session's states", before, bytes.size()};
    std::uint32_t last = 0;
    for (std::uint32_t i = 1; i <= n; ++i) {
        const std::uint32_t at = word_at(bytes.data() + 4 * i);
        if (at <= last || at > kv_len) return {Code::bad_shape, "marks in ascending order, at most", kv_len, at};
        last = at;
    }
    out = {n, n + (last != kv_len)};
    return {};
}

/// Writes a cache's states.
void write_states(const States& states, std::uint32_t slot, std::byte* at) noexcept {
    const std::uint32_t n_marks = states.caches[slot].n_marks;
    std::memcpy(at, &n_marks, sizeof n_marks);
    for (std::uint32_t i = 0; i < n_marks; ++i) std::memcpy(at += 4, &states.marks_of(slot)[i].kv_len, 4);
    at += 4;
    for (std::uint32_t i = 0; i < states.n_kept(slot); ++i, at += states.state_bytes)
        std::memcpy(at, states.at(states.kept(slot, i)), static_cast<std::size_t>(states.state_bytes));
}

/// Reads what read_states has seen into a cache that holds no state; there are free ones.
void fill_states(States& states, std::uint32_t slot, const std::byte* at, std::uint32_t kv_len) noexcept {
    for (std::uint32_t n = word_at(at); n > 0; --n) states.add_mark(slot, word_at(at += 4));
    at += 4;
    states.add_present(slot, kv_len);
    for (std::uint32_t i = 0; i < states.n_kept(slot); ++i, at += states.state_bytes)
        std::memcpy(states.at(states.kept(slot, i)), at, static_cast<std::size_t>(states.state_bytes));
}

/// The same from a cache of another pool.
void copy_states(const States& from, std::uint32_t from_slot, States& to, std::uint32_t slot,
                 std::uint32_t kv_len) noexcept {
    for (std::uint32_t i = 0; i < from.caches[from_slot].n_marks; ++i)
        to.add_mark(slot, from.marks_of(from_slot)[i].kv_len);
    to.add_present(slot, kv_len);
    for (std::uint32_t i = 0; i < to.n_kept(slot); ++i)
        std::memcpy(to.at(to.kept(slot, i)), from.at(from.kept(from_slot, i)),
                    static_cast<std::size_t>(to.state_bytes));
}

[[nodiscard]] std::uint32_t saved_crc(std::span<const std::byte> saved) noexcept {
    return crc32c(saved.subspan(sizeof(SavedHeader)), crc32c(saved.first(offsetof(SavedHeader, crc))));
}

/// In each of n rows of 16 lanes, those from n_used on become zeros.
void clear_lanes(std::byte* rows, std::uint64_t n, std::uint64_t lane_bytes, std::uint32_t n_used) noexcept {
    for (std::uint64_t i = 0; i < n; ++i, rows += kLanes * lane_bytes)
        std::memset(rows + n_used * lane_bytes, 0, static_cast<std::size_t>((kLanes - n_used) * lane_bytes));
}

/// A panel's keys from position n_used on, which may be those of positions that were forgotten, become zeros.
void clear_unused_keys(Type type, std::byte* panel, std::uint32_t head_dim, std::uint32_t n_used) noexcept {
    if (!is_quantized(type)) return clear_lanes(panel, head_dim, type == Type::f32 ? 4 : 2, n_used);
    const QuantFormat format = format_of(kQ4Caches && type == Type::q4 ? kKeyTypeOfQ4 : type);
    for (std::uint32_t at = 0; at < head_dim; at += kSuperblock, panel += format.unit_bytes()) {
        clear_lanes(panel, format.quants_at() / (kLanes * 2), 2, n_used);  // scales
        clear_lanes(panel + format.quants_at(), (format.unit_bytes() - format.quants_at()) / (kLanes * 4), 4, n_used);
    }
}

/// A panel's values from position n_used on, which may never have been written, become zeros.
void clear_unused_values(Type type, std::byte* panel, std::uint64_t bytes, std::uint32_t n_used) noexcept {
    if (!is_quantized(type)) return clear_lanes(panel, 1, bytes / kLanes, n_used);
    for (const std::byte* end = panel + bytes; panel != end; panel += value_group_bytes(type)) {
        clear_lanes(panel, 1, 2, n_used);  // scales
        clear_lanes(panel + kLanes * 2, 1, value_row_bytes(type), n_used);
    }
}

/// Whether a cache with that header belongs into a cache of the pool, and has room there.
[[nodiscard]] Status check_header(const PoolState& pool, const SavedHeader& had) noexcept {
    const SavedHeader want(pool, 0);
    const Status differences[] = {
        {Code::session_mismatch, "first eight bytes of a saved session", want.magic, had.magic},
        {Code::version_unsupported, "version of a saved session", want.version, had.version},
        {Code::session_mismatch, "numerics version of a saved session", want.numerics_version, had.numerics_version},
        {Code::session_mismatch, "fingerprint of a saved session's model", want.fingerprint, had.fingerprint},
        {Code::session_mismatch, "list of a saved session's rotary frequencies, by its room for positions (0 or 1)",
         want.kv_type / kLongRope, had.kv_type / kLongRope},
        {Code::session_mismatch, "number of a saved session's cache type", want.kv_type, had.kv_type}};
    for (const Status& d : differences)
        if (d.had != d.wanted) return d;
    if (had.kv_len > pool.limits.max_kv_len)
        return {Code::context_full, "room for positions at least", had.kv_len, pool.limits.max_kv_len};
    return {};
}

/// The cache gives back what it holds and takes pages for kv_len positions; n_states states are free then. All or, where there
/// are too few, nothing.
[[nodiscard]] Status renew(PoolState& pool, std::uint32_t slot, std::uint32_t kv_len, std::uint32_t n_states) noexcept {
    std::uint32_t n_free = pool.n_free;
    for (std::uint32_t i = 0; i < pool.slots[slot].n_pages; ++i) n_free += pool.n_users[pool.table(slot)[i]] == 1;
    const std::uint32_t n_wanted = (kv_len + pool.limits.page_len - 1) / pool.limits.page_len;
    if (n_wanted > n_free) return {Code::pool_full, "free pages at least", n_wanted, n_free};
    if (has_states(pool))
        if (const std::uint32_t n = pool.states->n_free_without(slot); n_states > n)
            return {Code::pool_full, "free states at least", n_states, n};
    clear(pool, slot);
    return grow(pool, slot, kv_len);
}

}  // namespace

std::uint64_t cache_bytes(const Cache& cache) noexcept {
    if (!cache.valid()) return 0;
    const PoolState& pool = *CacheAccess::pool(cache);
    std::uint64_t bytes = bytes_of_panels(pool, cache.kv_len());
    if (has_states(pool)) bytes += states_of(*pool.states, CacheAccess::slot(cache)).bytes(*pool.states);
    return bytes;
}

namespace {

/// `ranks`: null for a cache of all heads.
[[nodiscard]] Status save(const Cache& cache, std::span<std::byte> out, std::size_t& written,
                          const Ranks* ranks) noexcept {
    if (!cache.valid()) return no_such_cache();
    const PoolState& pool = *CacheAccess::pool(cache);
    if (kRanks && !ranks && pool.limits.n_ranks > 1)  // it has a part of the layers and heads alone
        return {Code::unsupported, "a rank's cache saved without the others", 1, pool.limits.n_ranks};
    const std::uint32_t kv_len = cache.kv_len();
    const std::uint64_t bytes = cache_bytes(cache);
    if (out.size() < bytes) return {Code::buffer_too_small, "bytes of a saved session", bytes, out.size()};
    SavedHeader header(pool, kv_len);
    std::byte* at = out.data() + sizeof header;
    for_each_run(pool, kv_len, [&](const Run& run) {
        if (run.is_own) std::memcpy(at, place(pool, CacheAccess::slot(cache), run), run.bytes);
        at += run.bytes;
        if (!run.is_own || !run.is_last || kv_len % kLanes == 0) return;
        std::byte* const panel = at - run.panels.panel_bytes;
        if (run.is_value)
            clear_unused_values(run.type, panel, run.panels.panel_bytes, kv_len % kLanes);
        else
            clear_unused_keys(run.type, panel, run.head_dim, kv_len % kLanes);
    });
    if (has_states(pool)) write_states(*pool.states, CacheAccess::slot(cache), at);
    written = static_cast<std::size_t>(bytes);
    if constexpr (kRanks) {
        const bool apart = has_states(pool) && StageOf(pool.limits).several();
        const std::uint32_t n = apart ? pool.states->n_kept(CacheAccess::slot(cache)) : 0;
        std::byte* const states = n ? out.data() + bytes - n * pool.states->state_bytes : nullptr;
        if (ranks && (!gather_heads(pool, kv_len, out.data() + sizeof header, *ranks) ||
                      !gather_states(pool, n, states, *ranks)))
            return {Code::io_error, "ranks", ranks->n_ranks, 0};
    }
    std::memcpy(out.data(), &header, sizeof header);
    header.crc = saved_crc(out.first(written));
    std::memcpy(out.data(), &header, sizeof header);
    return {};
}

}  // namespace

Status save_cache(const Cache& cache, std::span<std::byte> out, std::size_t& written) noexcept {
    return save(cache, out, written, nullptr);
}

Status save_cache(const Ranks& ranks, const Cache& cache, std::span<std::byte> out, std::size_t& written) noexcept {
    return save(cache, out, written, &ranks);
}

Status restore_cache(Cache& cache, std::span<const std::byte> saved) noexcept {
    if (!cache.valid()) return no_such_cache();
    PoolState& pool = *CacheAccess::pool(cache);
    const std::uint32_t slot = CacheAccess::slot(cache);
    SavedHeader header(pool, 0);
    if (saved.size() < sizeof header)
        return {Code::truncated, "bytes of a saved session's header", sizeof header, saved.size()};
    std::memcpy(&header, saved.data(), sizeof header);
    if (Status status = check_header(pool, header); !status.ok()) return status;
    std::uint64_t bytes = bytes_of_panels(pool, header.kv_len);
    SavedStates states;
    const std::span<const std::byte> after =
        saved.size() < bytes ? std::span<const std::byte>{} : saved.subspan(static_cast<std::size_t>(bytes));
    if (has_states(pool)) {
        if (Status status = read_states(*pool.states, after, header.kv_len, states); !status.ok()) return status;
        bytes += states.bytes(*pool.states);
    }
    const Code code = saved.size() < bytes ? Code::truncated : Code::bad_shape;
    if (saved.size() != bytes) return {code, "bytes of a saved session", bytes, saved.size()};
    const std::uint32_t crc = saved_crc(saved);
    if (crc != header.crc) return {Code::checksum_mismatch, "saved session", header.crc, crc};
    if (Status status = renew(pool, slot, header.kv_len, states.n_states); !status.ok()) return status;
    const std::byte* at = saved.data() + sizeof header;
    for_each_run(pool, header.kv_len, [&](const Run& run) {
        if (run.is_own) std::memcpy(place(pool, slot, run), at, run.bytes);
        at += run.bytes;
    });
    pool.slots[slot].kv_len = header.kv_len;
    if (has_states(pool)) fill_states(*pool.states, slot, after.data(), header.kv_len);
    return {};
}

Status copy_cache(const Cache& from, Cache& to) noexcept {
    if (!from.valid() || !to.valid()) return no_such_cache();
    const PoolState& f = *CacheAccess::pool(from);
    PoolState& t = *CacheAccess::pool(to);
    const std::uint32_t from_slot = CacheAccess::slot(from), slot = CacheAccess::slot(to), kv_len = from.kv_len();
    // The very same bytes, not a fingerprint: sizes must agree whatever a hostile model says it is.
    if (f.model->bytes().data() != t.model->bytes().data())
        return {Code::session_mismatch, "sessions that share one model", 0, 0};
    if (Status status = check_header(t, {f, kv_len}); !status.ok()) return status;
    if (&f == &t) {
        if (from_slot == slot) return {};
        clear(t, slot);
        share_all(t, from_slot, slot);
        return {};
    }
    SavedStates states;
    if (has_states(f)) {
        states = states_of(*f.states, from_slot);
        if (Status status = check_marks(*t.states, states.n_marks); !status.ok()) return status;
    }
    if (Status status = renew(t, slot, kv_len, states.n_states); !status.ok()) return status;
    // Pages of different lengths: panel by panel.
    const KvPages source = f.view(from_slot), target = t.view(slot);
    const auto copy = [&](const HeadPanels& a, const HeadPanels& c) {
        for (std::uint32_t pos = 0; pos < kv_len; pos += kLanes)
            std::memcpy(target.panel(c, pos), source.panel(a, pos), static_cast<std::size_t>(a.panel_bytes));
    };
    for_each_head(f, false, [&](std::uint32_t layer, const Block& b, std::uint32_t head) {
        copy(source.keys(b, layer, head), target.keys(b, layer, head));
        copy(source.values(b, layer, head), target.values(b, layer, head));
    });
    if (has_positions(f)) copy(source.next_positions(), target.next_positions());
    t.slots[slot].kv_len = kv_len;
    if (has_states(f)) copy_states(*f.states, from_slot, *t.states, slot, kv_len);
    return {};
}

}  // namespace fovea
