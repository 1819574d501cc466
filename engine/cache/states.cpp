// States: how slots are taken, shared, kept and given back.
#include "engine/cache/states.h"

#include <new>

#include "engine/format/format.h"
#include "fovea/plan.h"

namespace fovea {

StatesMap lay_out_states(std::uint64_t n_caches, std::uint64_t max_marks, std::uint64_t n_states) noexcept {
    StatesMap map{.bytes = kStatesBytes};
    const auto take = [&](std::uint64_t& offset, std::uint64_t bytes) {
        offset = map.bytes;
        map.bytes += round_up(bytes, kArenaAlignment);
    };
    take(map.caches, n_caches * sizeof(CacheStates));
    take(map.marks, n_caches * max_marks * sizeof(Mark));
    take(map.n_users, n_states * sizeof(std::uint32_t));
    take(map.free_states, n_states * sizeof(std::uint32_t));
    return map;
}

States* start_states(std::byte* tables, std::byte* bytes, std::uint32_t n_caches, std::uint32_t max_marks,
                     std::uint32_t n_states, std::uint64_t state_bytes) noexcept {
    const StatesMap map = lay_out_states(n_caches, max_marks, n_states);
    auto* states = new (tables) States;
    states->bytes = bytes;
    states->caches = reinterpret_cast<CacheStates*>(tables + map.caches);
    states->marks = reinterpret_cast<Mark*>(tables + map.marks);
    states->n_users = reinterpret_cast<std::uint32_t*>(tables + map.n_users);
    states->free_states = reinterpret_cast<std::uint32_t*>(tables + map.free_states);
    states->state_bytes = state_bytes;
    states->max_marks = max_marks;
    states->n_free = n_states;
    for (std::uint32_t i = 0; i < n_caches; ++i) new (states->caches + i) CacheStates;
    for (std::uint32_t i = 0; i < n_states; ++i) {
        states->n_users[i] = 0;
        states->free_states[i] = n_states - 1 - i;  // so that slot 0 goes first
    }
    return states;
}

std::uint32_t States::take() noexcept {
    const std::uint32_t state = free_states[--n_free];
    n_users[state] = 1;
    return state;
}

void States::release(std::uint32_t state) noexcept {
    if (state != CacheStates::kNone && --n_users[state] == 0) free_states[n_free++] = state;
}

void States::take(std::uint32_t slot) noexcept { caches[slot].next = take(); }

StateStep States::step(std::uint32_t slot, bool is_first) const noexcept {
    const CacheStates& c = caches[slot];
    const std::uint32_t from = is_first ? c.present : c.next;
    return {from == CacheStates::kNone ? nullptr : at(from), at(c.next)};
}

void States::settle(std::uint32_t slot, bool succeeded) noexcept {
    CacheStates& c = caches[slot];
    release(succeeded ? c.present : c.next);
    if (succeeded) c.present = c.next;
    c.next = CacheStates::kNone;
}

bool States::is_marked(std::uint32_t slot, std::uint32_t kv_len) const noexcept {
    for (std::uint32_t i = 0; i < caches[slot].n_marks; ++i)
        if (marks_of(slot)[i].kv_len == kv_len) return true;
    return false;
}

Status States::mark(std::uint32_t slot, std::uint32_t kv_len) noexcept {
    CacheStates& c = caches[slot];
    if (kv_len == 0 || is_marked(slot, kv_len)) return {};
    if (c.n_marks == max_marks) return {Code::pool_full, "marks of a cache at most", max_marks, c.n_marks + 1};
    if (n_free == 0) return {Code::pool_full, "free states at least", 1, 0};  // which the cache goes on with
    marks_of(slot)[c.n_marks++] = {kv_len, c.present};
    ++n_users[c.present];
    return {};
}

void States::unmark(std::uint32_t slot, std::uint32_t kv_len) noexcept {
    std::uint32_t n_kept = 0;
    Mark* const all = marks_of(slot);
    for (std::uint32_t i = 0; i < caches[slot].n_marks; ++i) {
        if (all[i].kv_len == kv_len)
            release(all[i].state);
        else
            all[n_kept++] = all[i];
    }
    caches[slot].n_marks = n_kept;
}

std::uint32_t States::reach(std::uint32_t slot, std::uint32_t kv_len) const noexcept {
    std::uint32_t reached = 0;
    for (std::uint32_t i = 0; i < caches[slot].n_marks; ++i)
        if (const std::uint32_t at = marks_of(slot)[i].kv_len; at <= kv_len) reached = at;
    return reached;
}

void States::rewind(std::uint32_t slot, std::uint32_t kv_len) noexcept {
    CacheStates& c = caches[slot];
    release(c.present);
    c.present = CacheStates::kNone;
    for (; c.n_marks; --c.n_marks) {
        const Mark& last = marks_of(slot)[c.n_marks - 1];
        if (last.kv_len <= kv_len) {
            c.present = last.state;
            ++n_users[last.state];
            return;
        }
        release(last.state);
    }
}

void States::share(std::uint32_t from, std::uint32_t to) noexcept {
    caches[to] = caches[from];
    if (caches[to].present != CacheStates::kNone) ++n_users[caches[to].present];
    for (std::uint32_t i = 0; i < caches[to].n_marks; ++i) {
        marks_of(to)[i] = marks_of(from)[i];
        ++n_users[marks_of(to)[i].state];
    }
}

std::uint32_t States::n_kept(std::uint32_t slot) const noexcept {
    const CacheStates& c = caches[slot];
    const bool marked = c.n_marks && marks_of(slot)[c.n_marks - 1].state == c.present;
    return c.n_marks + (c.present != CacheStates::kNone && !marked);
}

std::uint32_t States::n_free_without(std::uint32_t slot) const noexcept {
    const CacheStates& c = caches[slot];
    std::uint32_t n = n_free;
    for (std::uint32_t i = 0; i < n_kept(slot); ++i)
        n += n_users[kept(slot, i)] == 1u + (i < c.n_marks && kept(slot, i) == c.present);
    return n;
}

void States::add_mark(std::uint32_t slot, std::uint32_t kv_len) noexcept {
    marks_of(slot)[caches[slot].n_marks++] = {kv_len, take()};
}

void States::add_present(std::uint32_t slot, std::uint32_t kv_len) noexcept {
    CacheStates& c = caches[slot];
    const Mark* last = c.n_marks ? marks_of(slot) + c.n_marks - 1 : nullptr;
    if (last && last->kv_len == kv_len)
        ++n_users[c.present = last->state];
    else if (kv_len)
        c.present = take();
}

}  // namespace fovea
