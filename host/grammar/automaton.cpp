// Rules to automata: fragments with empty edges (Thompson 1968), then sets of their states (Rabin and Scott 1959), one
// automaton for each rule. Entering a rule is a symbol like a byte.
#include "host/grammar/automaton.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

// For each state that an automaton may have: the most work that a refused grammar costs.
constexpr std::size_t kFragmentsEach = 7, kWorkEach = 333;
constexpr std::uint32_t kStart = 0, kEnd = 1;  // fragments of each unit
constexpr std::uint32_t kMostDepth = 2000;     // expressions within expressions: enough stack for a thread of 2 MB

struct Fragment {
    std::vector<std::uint32_t> empty;
    std::vector<ByteRange> bytes;
    std::vector<Call> calls;
};

/// What a grammar may cost, counted while automata are made of it.
class Limit {
public:
    explicit Limit(std::size_t max_states) : max_states_(max_states) {}

    void check_states(std::size_t n) const { check(n, max_states_); }
    void check_fragments(std::size_t n) const { check(n, max_states_ * kFragmentsEach); }
    void count_work(std::size_t n) {
        work_ += n;
        check(work_, max_states_ * kWorkEach);
    }

private:
    void check(std::size_t n, std::size_t most) const {
        if (n > most)
            throw GrammarError("expected a grammar of at most " + std::to_string(max_states_) + " states, got more");
    }

    const std::size_t max_states_;
    std::size_t work_ = 0;
};

/// The fragments that one unit is made of at a time. Nothing leads into `from`, and nothing out of `to`, but what a caller adds.
class Fragments {
public:
    Fragments(const Grammar& grammar, Limit& limit, std::vector<Unit>& units)
        : grammar_(grammar), rules_(grammar), limit_(limit), units_(units) {}

    std::uint32_t unit_of(NodeId body, const std::string& name) {
        const auto [place, made] = unit_of_.try_emplace(body, static_cast<std::uint32_t>(units_.size()));
        if (made) units_.push_back({name, body, 0});
        return place->second;
    }

    /// Those of a unit in place of another's.
    void make(NodeId body) {
        fragments_.clear();
        depth_ = 0;
        fragments_.resize(2);
        add(body, kStart, kEnd);
    }
    [[nodiscard]] const Fragment& operator[](std::uint32_t i) const { return fragments_[i]; }
    [[nodiscard]] std::size_t size() const { return fragments_.size(); }

private:
    std::uint32_t fresh() {
        limit_.check_fragments(fragments_.size());
        fragments_.emplace_back();
        return static_cast<std::uint32_t>(fragments_.size() - 1);
    }
    void link(std::uint32_t from, std::uint32_t to) { fragments_[from].empty.push_back(to); }

    void add_bytes(std::string_view text, std::uint32_t from, std::uint32_t to) {
        if (text.empty()) return link(from, to);
        for (std::size_t i = 0; i < text.size(); ++i) {
            const std::uint32_t next = i + 1 == text.size() ? to : fresh();
            const auto byte = static_cast<std::uint8_t>(text[i]);
            fragments_[from].bytes.push_back({byte, byte, next});
            from = next;
        }
    }

    void add_set(const CodeSet& set, std::uint32_t from, std::uint32_t to) {
        for (const ByteSequence& sequence : utf8_sequences(set)) {
            std::uint32_t at = from;
            for (std::uint32_t i = 0; i < sequence.n; ++i) {
                const std::uint32_t next = i + 1 == sequence.n ? to : fresh();
                fragments_[at].bytes.push_back({sequence.low[i], sequence.high[i], next});
                at = next;
            }
        }
    }

    void add_call(NodeId body, const std::string& name, std::uint32_t min, std::uint32_t max, std::uint32_t from,
                  std::uint32_t to, Item item = Item::none) {
        if (rules_.nullable(body)) min = 0;
        if (min == 0) link(from, to);
        fragments_[from].calls.push_back({unit_of(body, name), std::max(min, 1u), max == kNoLimit ? 0 : max, to, item});
    }

    void add_repeat(const Node& node, std::uint32_t from, std::uint32_t to) {
        const NodeId child = node.children[0];
        const std::uint64_t size = rules_.size(child);
        if (node.max == 0) return link(from, to);
        if ((node.max != kNoLimit && node.max > kMostRepeats) || node.min > kMostRepeats)
            throw GrammarError("expected at most " + std::to_string(kMostRepeats) + " repetitions, got " +
                               std::to_string(node.max == kNoLimit ? node.min : node.max));
        const std::uint32_t n_copies = node.max == kNoLimit ? node.min : node.max;
        if (n_copies > 1 && size * n_copies > kMostUnrolled)
            return add_call(child, "(repeated)", node.min, node.max, from, to);
        for (std::uint32_t i = 0; i < n_copies; ++i) {
            const std::uint32_t next = node.max != kNoLimit && i + 1 == n_copies ? to : fresh();
            if (i >= node.min) link(from, to);
            add(child, from, next);
            from = next;
        }
        if (node.max != kNoLimit) return;
        const std::uint32_t loop = fresh(), end = fresh();
        link(from, loop);
        add(child, loop, end);
        link(end, loop);
        link(loop, to);
    }

    /// Two rows of states: before the first item that is present, and after it.
    void add_list(const Node& node, std::uint32_t from, std::uint32_t to) {
        std::uint32_t none = from, some = fresh();
        for (std::size_t i = 0; i < node.text.size(); ++i) {
            const std::uint32_t item = fresh(), next = fresh();
            const bool again = node.text[i] == kAnyNumber;
            link(none, item);
            add(node.children.back(), some, item);
            if (again) {
                const std::uint32_t end = fresh();
                add(node.children[i], item, end);
                link(end, some);
                link(some, next);
            } else {
                add(node.children[i], item, next);
            }
            if (node.text[i] == kRequired) {
                none = fresh();  // nothing leads here
            } else {
                const std::uint32_t still = fresh();
                link(none, still);
                none = still;
                if (!again) link(some, next);
            }
            some = next;
        }
        link(none, to);
        link(some, to);
    }

    void add_graph(const Graph& graph, std::uint32_t from, std::uint32_t to) {
        std::vector<std::uint32_t> states;
        for (std::size_t i = 0; i < graph.accepts.size(); ++i) {
            states.push_back(fresh());
            if (graph.accepts[i]) link(states[i], to);
        }
        link(from, states[0]);
        for (const GraphEdge& edge : graph.edges) add(edge.label, states[edge.from], states[edge.to]);
    }

    void add(NodeId id, std::uint32_t from, std::uint32_t to) {
        limit_.count_work(1);
        if (++depth_ > kMostDepth)
            throw GrammarError("expected expressions at most " + std::to_string(kMostDepth) +
                               " deep within expressions, got more");
        add_node(grammar_.nodes[id], from, to);
        --depth_;
    }
    void add_node(const Node& node, std::uint32_t from, std::uint32_t to) {
        switch (node.kind) {
            case NodeKind::bytes: return add_bytes(node.text, from, to);
            case NodeKind::set: return add_set(node.set, from, to);
            case NodeKind::choice:
                for (const NodeId child : node.children) add(child, from, to);
                return;
            case NodeKind::sequence:
                if (node.children.empty()) return link(from, to);
                for (std::size_t i = 0; i < node.children.size(); ++i) {
                    const std::uint32_t next = i + 1 == node.children.size() ? to : fresh();
                    add(node.children[i], from, next);
                    from = next;
                }
                return;
            case NodeKind::repeat: return add_repeat(node, from, to);
            case NodeKind::list: return add_list(node, from, to);
            case NodeKind::graph: return add_graph(grammar_.graphs[node.rule], from, to);
            case NodeKind::rule: {
                const Rule& rule = grammar_.rules[node.rule];
                if (node.item == Item::none && rules_.inlined(node.rule)) return add(rule.body, from, to);
                return add_call(rule.body, rule.name, 1, 1, from, to, node.item);
            }
        }
    }

    const Grammar& grammar_;
    Rules rules_;
    Limit& limit_;
    std::vector<Unit>& units_;
    std::unordered_map<NodeId, std::uint32_t> unit_of_;
    std::vector<Fragment> fragments_;
    std::uint32_t depth_ = 0;
};

/// Sets of fragments as states.
class Builder {
public:
    Builder(const Grammar& grammar, std::size_t max_states)
        : grammar_(grammar), limit_(max_states), fragments_(grammar, limit_, out_.units) {}

    Automaton build() {
        const Rule& root = grammar_.rules[grammar_.root];
        (void)fragments_.unit_of(root.body, root.name);
        for (std::size_t u = 0; u < out_.units.size(); ++u) build_unit(static_cast<std::uint32_t>(u));
        return std::move(out_);
    }

private:
    /// The state of all places that can be reached from `seeds` without a byte.
    std::uint32_t state_of(std::vector<std::uint32_t> seeds) {
        ++stamp_;
        stamps_.resize(fragments_.size());
        std::vector<std::uint32_t> set;
        while (!seeds.empty()) {
            limit_.count_work(1);
            const std::uint32_t s = seeds.back();
            seeds.pop_back();
            if (stamps_[s] == stamp_) continue;
            stamps_[s] = stamp_;
            const Fragment& fragment = fragments_[s];
            if (!fragment.bytes.empty() || !fragment.calls.empty() || s == kStart || s == kEnd) set.push_back(s);
            seeds.insert(seeds.end(), fragment.empty.begin(), fragment.empty.end());
        }
        std::sort(set.begin(), set.end());
        limit_.count_work(set.size() + 1);
        const auto [place, made] = known_.try_emplace(std::move(set), static_cast<std::uint32_t>(out_.states.size()));
        if (made) {
            limit_.check_states(out_.states.size() + 1);
            out_.states.push_back({.unit = unit_});
            sets_.push_back(&place->first);
        }
        return place->second;
    }

    void add_ranges(const std::vector<std::uint32_t>& set, State& state) {
        std::vector<ByteRange> edges;
        std::bitset<257> cuts;
        for (const std::uint32_t s : set)
            for (const ByteRange& edge : fragments_[s].bytes) {
                edges.push_back(edge);
                cuts[edge.low] = cuts[edge.high + 1u] = true;
            }
        for (std::uint32_t low = 0; !edges.empty() && low < 256;) {
            std::uint32_t end = low + 1;
            while (end < 256 && !cuts[end]) ++end;
            std::vector<std::uint32_t> targets;
            for (const ByteRange& edge : edges)
                if (edge.low <= low && low <= edge.high) targets.push_back(edge.target);
            limit_.count_work(edges.size());
            if (!targets.empty()) {
                const std::uint32_t target = state_of(std::move(targets));
                const auto high = static_cast<std::uint8_t>(end - 1);
                if (!state.ranges.empty() && state.ranges.back().target == target &&
                    state.ranges.back().high + 1u == low)
                    state.ranges.back().high = high;
                else
                    state.ranges.push_back({static_cast<std::uint8_t>(low), high, target});
            }
            low = end;
        }
    }

    void add_calls(const std::vector<std::uint32_t>& set, State& state) {
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, Item>, std::vector<std::uint32_t>> targets;
        for (const std::uint32_t s : set)
            for (const Call& call : fragments_[s].calls)
                targets[{call.callee, call.min, call.max, call.item}].push_back(call.target);
        for (auto& [call, to] : targets) {
            const auto [callee, min, max, item] = call;
            state.calls.push_back({callee, min, max, state_of(std::move(to)), item});
        }
    }

    void build_unit(std::uint32_t unit) {
        stamps_.clear();
        known_.clear();
        sets_.clear();
        unit_ = unit;
        fragments_.make(out_.units[unit].body);
        const std::size_t first = out_.states.size();
        out_.units[unit].start = state_of({kStart});  // in a set, so that the unit's first state is no other
        for (std::size_t i = first; i < out_.states.size(); ++i) {
            const std::vector<std::uint32_t>& set = *sets_[i - first];
            State state{.unit = unit};
            state.accepts = std::binary_search(set.begin(), set.end(), kEnd);
            add_ranges(set, state);
            add_calls(set, state);
            out_.states[i] = std::move(state);
        }
        if (unit != 0) out_.states[first].accepts = false;
    }

    const Grammar& grammar_;
    Limit limit_;
    Automaton out_;
    Fragments fragments_;

    // The unit that is being built:
    std::vector<std::uint32_t> stamps_;
    std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, HashOfWords> known_;
    std::vector<const std::vector<std::uint32_t>*> sets_;  // keys of known_, by state
    std::uint32_t stamp_ = 0, unit_ = 0;
};

}  // namespace

std::uint32_t State::next(std::uint8_t byte) const {
    for (const ByteRange& range : ranges)
        if (byte <= range.high) return byte >= range.low ? range.target : kNoTarget;
    return kNoTarget;
}

Automaton build_automaton(const Grammar& grammar, std::size_t max_states) {
    return Builder(grammar, max_states).build();
}

}  // namespace fovea::grammar
