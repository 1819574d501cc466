// The places of a text, and where a byte leads from them. For constraint_run.cpp alone.
#pragma once
#include "engine/text/constraint_run.h"

namespace fovea {
namespace {

constexpr std::uint16_t kRoot = 0;

[[nodiscard]] bool same_stack(const ConstraintRun& run, std::uint16_t a, std::uint16_t b) noexcept {
    while (a != b) {
        const Frame &f = run.frames[a], &g = run.frames[b];
        if (f.depth != g.depth || f.call != g.call || f.count != g.count) return false;
        a = f.parent;
        b = g.parent;
    }
    return true;
}

/// Whether the calls of stack `a` read all that those of `b` do: they are the same, but may have counted to where more can follow.
[[nodiscard]] bool covers(const ConstraintRun& run, std::uint16_t a, std::uint16_t b) noexcept {
    while (a != b) {
        const Frame &f = run.frames[a], &g = run.frames[b];
        if (f.depth != g.depth || f.call != g.call) return false;
        const CallRecord& call = run.form.calls[f.call];
        const bool is_free = f.count + 1u >= call.min;  // it may end with this repetition
        if (f.count < g.count ? !is_free : f.count > g.count && call.max != 0) return false;
        a = f.parent;
        b = g.parent;
    }
    return true;
}

/// Adds a place that reads what no other there does, if there is room. Others whose texts it reads, too, go.
void add(ConstraintRun& run, Places& to, std::uint16_t state, std::uint16_t frame) noexcept {
    const std::uint32_t end = to.first + to.n;
    if (has(Part::known_sets)) run.n_compared += to.n;
    for (Place& other : run.pool.subspan(to.first, to.n)) {
        if (other.state != state) continue;
        if (covers(run, other.frame, frame)) return;
        if (covers(run, frame, other.frame)) other.state = kNoState;
    }
    if (to.n == kMostPlaces || end == run.pool.size()) return;
    run.pool[to.first + to.n++] = {state, frame};
}

/// Leaves out places that others made needless, and those that `drops` says.
template<class Drops>
void compact(ConstraintRun& run, Places& set, Drops drops) noexcept {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < set.n; ++i) {
        const Place place = run.pool[set.first + i];
        if (place.state != kNoState && !drops(place)) run.pool[set.first + n++] = place;
    }
    set.n = n;
}

/// Calls that fit above `frame`.
[[nodiscard]] std::uint32_t room(const ConstraintRun& run, std::uint16_t frame) noexcept {
    return run.form.header->max_depth - run.frames[frame].depth;
}

/// A frame above `parent`, or kRoot if there is no more room.
[[nodiscard]] std::uint16_t push(ConstraintRun& run, std::uint32_t call, std::uint32_t count,
                                 std::uint16_t parent) noexcept {
    std::uint16_t* known = nullptr;
    if (KnownSets* const sets = sets_of(run)) {
        known = &sets->frame_at[(call * 0x9e3779b1u ^ count * 0x85ebca6bu ^ parent * 0xc2b2ae35u) >> 20];
        const Frame& frame = run.frames[*known];
        if (*known != kRoot && *known < run.n_frames && frame.call == call && frame.count == count &&
            frame.parent == parent)
            return *known;
    }
    if (run.n_frames == run.frames.size()) return kRoot;
    run.frames[run.n_frames] = {static_cast<std::uint16_t>(call), static_cast<std::uint16_t>(count), parent,
                                static_cast<std::uint16_t>(run.frames[parent].depth + 1)};
    if (known) *known = static_cast<std::uint16_t>(run.n_frames);
    return static_cast<std::uint16_t>(run.n_frames++);
}

/// Enters the rule of a call, if the way to its end fits on the stack.
void enter(ConstraintRun& run, Places& to, std::uint32_t number, std::uint16_t frame) noexcept {
    const CallRecord& call = run.form.calls[number];
    if (ListItems* const items = items_of(run); items && is_item(call) && !items->begin(call)) return;
    const std::uint32_t height = run.form.states[call.callee].height, left = room(run, frame);
    if (run.form.is_tail(call)) {
        if (height <= left) add(run, to, call.callee, frame);
        return;
    }
    if (height + 1 > left || run.form.states[call.target].height > left) return;
    if (const std::uint16_t own = push(run, number, 0, frame); own != kRoot) add(run, to, call.callee, own);
}

/// The rule of `frame` ends: it is entered again, or its caller goes on.
void leave(ConstraintRun& run, Places& to, std::uint16_t frame) noexcept {
    const Frame f = run.frames[frame];
    const CallRecord& call = run.form.calls[f.call];
    if (ListItems* const items = items_of(run); items && is_item(call) && !items->may_end(call.loop, run.form.words))
        return;
    std::uint32_t n = f.count + 1u;
    if (call.max == 0 && n > call.min) n = call.min;  // more need not be counted
    if (call.max == 0 || n < call.max) {
        const std::uint16_t again = n == f.count ? frame : push(run, f.call, n, f.parent);
        if (again != kRoot) add(run, to, call.callee, again);
    }
    if (n >= call.min) add(run, to, call.target, f.parent);
}

[[nodiscard]] bool reads_bytes(const ConstraintRun& run, Place place) noexcept {
    return run.form.states[place.state].n_ranges != 0;
}
[[nodiscard]] bool ends(const ConstraintRun& run, Place place) noexcept {
    return place.frame == kRoot && run.form.states[place.state].accepts;
}

/// Adds the places that a place leads to without a byte: its rule ends, or another is entered.
void follow(ConstraintRun& run, Places& to, Place place) noexcept {
    const StateRecord& s = run.form.states[place.state];
    if (s.accepts && place.frame != kRoot) leave(run, to, place.frame);
    if (has(Part::known_sets)) run.n_entered += s.n_calls;
    for (std::uint32_t c = s.first_call; c < s.first_call + std::uint32_t{s.n_calls}; ++c)
        enter(run, to, c, place.frame);
}

/// Adds the places that can be reached without a byte, then drops places that only led there.
void expand(ConstraintRun& run, Places& set) noexcept {
    for (std::uint32_t i = 0; i < set.n; ++i)
        if (const Place place = run.pool[set.first + i]; place.state != kNoState) follow(run, set, place);
    compact(run, set, [&](Place place) { return !reads_bytes(run, place) && !ends(run, place); });
}

/// The places that `byte` leads to from the places `from`; they start at `first` of the pool.
[[nodiscard]] Places step(ConstraintRun& run, Places from, std::uint8_t byte, std::uint32_t first) noexcept {
    Places to{first, 0};
    bool simple = true;
    for (std::uint32_t i = from.first; i < from.first + from.n; ++i) {
        const Place place = run.pool[i];
        const std::uint16_t target = run.form.next(place.state, byte);
        if (target == kNoState || run.form.states[target].height > room(run, place.frame)) continue;
        simple = simple && run.form.simple(target);
        add(run, to, target, place.frame);
    }
    if (!simple)
        expand(run, to);
    else if (to.n > 1)
        compact(run, to, [](Place) { return false; });
    return to;
}

}  // namespace
}  // namespace fovea
