// Trims an automaton to the states that can be reached and that lead to an end.
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "host/base/hash.h"
#include "host/grammar/automaton.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

constexpr std::uint32_t kNever = 0xffffffffu;

void keep_bytes(State& state, const ByteSet& available) {
    const auto is_available = [&](const ByteRange& range) {
        for (std::uint32_t b = range.low; b <= range.high; ++b)
            if (!available[b]) return false;
        return true;
    };
    if (std::all_of(state.ranges.begin(), state.ranges.end(), is_available)) return;
    std::vector<ByteRange> kept;
    for (const ByteRange& range : state.ranges)
        for (std::uint32_t b = range.low; b <= range.high; ++b) {
            if (!available[b]) continue;
            const auto byte = static_cast<std::uint8_t>(b);
            if (!kept.empty() && kept.back().high + 1u == b && kept.back().target == range.target)
                kept.back().high = byte;
            else
                kept.push_back({byte, byte, range.target});
        }
    state.ranges = std::move(kept);
}

/// The least calls within calls on the way from each state to its rule's end: of several ways the least, of a way the most.
void find_heights(Automaton& a) {
    for (State& s : a.states) s.height = s.accepts ? 0 : kNever;
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = a.states.size(); i-- > 0;) {  // what follows a state mostly has a higher number
            State& s = a.states[i];
            std::uint32_t height = s.height;
            for (const ByteRange& range : s.ranges) height = std::min(height, a.states[range.target].height);
            for (const Call& call : s.calls) {
                const std::uint32_t inside = a.states[call.callee].height, after = a.states[call.target].height;
                if (inside != kNever && after != kNever) height = std::min(height, std::max(inside + 1, after));
            }
            changed = changed || height != s.height;
            s.height = height;
        }
    }
}

void drop_dead_ends(Automaton& a) {
    const auto dead = [&](std::uint32_t state) { return a.states[state].height == kNever; };
    for (State& s : a.states) {
        std::erase_if(s.ranges, [&](const ByteRange& range) { return dead(range.target); });
        std::erase_if(s.calls, [&](const Call& call) { return dead(call.callee) || dead(call.target); });
    }
}

/// Calls visit(target) for each state that one goes to.
void for_each_target(State& s, const auto& visit) {
    for (ByteRange& range : s.ranges) visit(range.target);
    for (Call& call : s.calls) {
        visit(call.callee);
        visit(call.target);
    }
}

/// Numbers the states anew, in the order in which they are found from the start.
void keep_reached(Automaton& a) {
    std::vector<std::uint32_t> number(a.states.size(), kNever), order{a.start};
    number[a.start] = 0;
    const auto reach = [&](std::uint32_t& state) {
        if (number[state] == kNever) {
            number[state] = static_cast<std::uint32_t>(order.size());
            order.push_back(state);
        }
        state = number[state];
    };
    std::vector<State> states;
    for (std::size_t i = 0; i < order.size(); ++i) {
        State s = std::move(a.states[order[i]]);
        for_each_target(s, reach);
        states.push_back(std::move(s));
    }
    for (Unit& unit : a.units) unit.start = number[unit.start];
    a.states = std::move(states);
    a.start = 0;
}

[[nodiscard]] std::uint64_t hash_of(const State& s) {
    std::uint64_t h = hash_word(s.unit, kHashSeed) + s.accepts;
    for (const ByteRange& range : s.ranges) h = hash_word(range.target, hash_word(range.low << 8 | range.high, h));
    for (const Call& call : s.calls)
        for (const std::uint32_t word : {call.callee, call.min, call.max, call.target}) h = hash_word(word, h);
    return h ^ h >> 32;
}

[[nodiscard]] bool go_on_alike(const State& a, const State& b) {
    const auto same_range = [](const ByteRange& x, const ByteRange& y) {
        return x.low == y.low && x.high == y.high && x.target == y.target;
    };
    const auto same_call = [](const Call& x, const Call& y) {
        return x.callee == y.callee && x.min == y.min && x.max == y.max && x.target == y.target && x.item == y.item &&
               x.list == y.list;
    };
    return a.unit == b.unit && a.accepts == b.accepts &&
           std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), b.ranges.end(), same_range) &&
           std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(), same_call);
}

/// States by how they go on, in lists of those with equal hashes. What is in it does not change.
class StateTable {
public:
    explicit StateTable(const std::vector<State>& states)
        : states_(states), first_(std::bit_ceil(states.size() + 1), kNever), next_(states.size(), kNever) {}

    /// The state in it that goes on as this one, which else is put in.
    std::uint32_t put(std::uint32_t state) {
        std::uint32_t* at = slot_of(state);
        for (; *at != kNever; at = &next_[*at])
            if (go_on_alike(states_[*at], states_[state])) return *at;
        next_[state] = kNever;
        return *at = state;
    }
    void take_out(std::uint32_t state) {
        for (std::uint32_t* at = slot_of(state); *at != kNever; at = &next_[*at])
            if (*at == state) {
                *at = next_[state];
                return;
            }
    }

private:
    std::uint32_t* slot_of(std::uint32_t state) { return &first_[hash_of(states_[state]) & (first_.size() - 1)]; }

    const std::vector<State>& states_;
    std::vector<std::uint32_t> first_, next_;
};

/// Merges states that go on alike, from ends to beginnings: words of a list share their last letters. States that are
/// alike only in a circle stay apart. When a state is merged, only the states that led to it are looked at again.
void merge_alike(Automaton& a) {
    const auto n_states = static_cast<std::uint32_t>(a.states.size());
    std::vector<std::vector<std::uint32_t>> comes_from(n_states);
    for (std::uint32_t i = 0; i < n_states; ++i)
        for_each_target(a.states[i], [&](std::uint32_t target) { comes_from[target].push_back(i); });
    StateTable known(a.states);
    std::vector<std::uint32_t> kept_as(n_states), waiting(n_states);
    std::iota(kept_as.begin(), kept_as.end(), 0u);
    std::iota(waiting.rbegin(), waiting.rend(), 0u);
    while (!waiting.empty()) {
        const std::uint32_t state = waiting.back();
        waiting.pop_back();
        if (kept_as[state] != state) continue;
        std::uint32_t kept = known.put(state), left = state;
        if (kept == state) continue;
        if (comes_from[left].size() > comes_from[kept].size()) {
            known.take_out(kept);
            std::swap(kept, left);
            (void)known.put(kept);
        }
        kept_as[left] = kept;
        for (const std::uint32_t from : comes_from[left]) {
            known.take_out(from);
            for_each_target(a.states[from], [&](std::uint32_t& target) { target = target == left ? kept : target; });
            waiting.push_back(from);
        }
        comes_from[kept].insert(comes_from[kept].end(), comes_from[left].begin(), comes_from[left].end());
        comes_from[left] = {};
    }
    const auto last_of = [&](std::uint32_t state) {
        while (kept_as[state] != state) state = kept_as[state];
        return state;
    };
    for (Unit& unit : a.units) unit.start = last_of(unit.start);
    a.start = last_of(a.start);
}

/// Left recursion: a rule that is entered again before it has read a byte would be entered without end.
void check_left_recursion(const Automaton& a) {
    enum : std::uint8_t { unseen, open, done };
    std::vector<std::uint8_t> seen(a.states.size(), unseen);
    struct Step {
        std::uint32_t state, next;
    };
    for (std::uint32_t root = 0; root < a.states.size(); ++root) {
        if (seen[root] != unseen) continue;
        std::vector<Step> path{{root, 0}};
        seen[root] = open;
        while (!path.empty()) {
            Step& step = path.back();
            const State& s = a.states[step.state];
            if (step.next == s.calls.size()) {
                seen[step.state] = done;
                path.pop_back();
                continue;
            }
            const std::uint32_t callee = s.calls[step.next++].callee;
            if (seen[callee] == open)
                throw GrammarError("rule " + a.units[a.states[callee].unit].name +
                                   ": expected a character before it comes again, got recursion at its left");
            if (seen[callee] == unseen) {
                seen[callee] = open;
                path.push_back({callee, 0});
            }
        }
    }
}

}  // namespace

void trim(Automaton& a, const ByteSet& available) {
    for (State& s : a.states) {
        keep_bytes(s, available);
        for (Call& call : s.calls) {
            Unit& callee = a.units[call.callee];
            callee.is_item = callee.is_item || call.item != Item::none;
            call.callee = callee.start;
        }
    }
    a.start = a.units[0].start;
    find_heights(a);
    if (a.states[a.start].height == kNever)
        throw GrammarError("expected a grammar of at least one text that ends, got none");
    drop_dead_ends(a);
    merge_alike(a);
    keep_reached(a);
    check_left_recursion(a);
}

}  // namespace fovea::grammar
