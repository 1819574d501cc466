// Rules to automata: fragments with empty edges (Thompson 1968), then sets of their states (Rabin and Scott 1959), one
// automaton for each rule. Entering a rule is a symbol like a byte.
#include "host/grammar/automaton.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <unordered_map>

#include "host/base/list_numbers.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

// For each state that an automaton may have: the most work that a refused grammar costs.
constexpr std::size_t kFragmentsEach = 7, kWorkEach = 333;
constexpr std::uint32_t kStart = 0, kEnd = 1;  // fragments of each unit
constexpr std::uint32_t kMostDepth = 2000;     // expressions within expressions: enough stack for a thread of 2 MB

/// The edges of one kind that lead out of each fragment, in no order.
template<class Edge>
class Edges {
public:
    void resize(std::size_t n_fragments) { last_.resize(n_fragments, kNone); }
    void clear() {
        links_.clear();
        last_.clear();
    }
    void add(std::uint32_t fragment, const Edge& edge) {
        links_.push_back({edge, last_[fragment]});
        last_[fragment] = static_cast<std::uint32_t>(links_.size() - 1);
    }
    [[nodiscard]] bool has(std::uint32_t fragment) const { return last_[fragment] != kNone; }
    void visit(std::uint32_t fragment, const auto& visit_edge) const {
        for (std::uint32_t i = last_[fragment]; i != kNone; i = links_[i].before) visit_edge(links_[i].edge);
    }

private:
    static constexpr std::uint32_t kNone = 0xffffffffu;
    struct Link {
        Edge edge;
        std::uint32_t before;
    };
    std::vector<Link> links_;
    std::vector<std::uint32_t> last_;
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
    Fragments(const Grammar& grammar, Limit& limit, std::vector<Unit>& units, bool tells_texts)
        : grammar_(grammar), rules_(grammar), limit_(limit), units_(units), tells_texts_(tells_texts) {}

    std::uint32_t unit_of(NodeId body, const std::string& name) {
        const auto [place, made] = unit_of_.try_emplace(body, static_cast<std::uint32_t>(units_.size()));
        if (made) units_.push_back({name, body, 0});
        return place->second;
    }

    /// Those of a unit in place of another's.
    void make(NodeId body) {
        empty.clear(), bytes.clear(), calls.clear();
        depth_ = 0;
        n_ = 0;
        (void)fresh(), (void)fresh();  // kStart, kEnd
        add(body, kStart, kEnd);
    }
    [[nodiscard]] std::size_t size() const { return n_; }

    Edges<std::uint32_t> empty;
    Edges<ByteRange> bytes;
    Edges<Call> calls;

private:
    std::uint32_t fresh() {
        limit_.check_fragments(n_);
        const std::uint32_t made = n_++;
        empty.resize(n_), bytes.resize(n_), calls.resize(n_);
        return made;
    }
    void link(std::uint32_t from, std::uint32_t to) { empty.add(from, to); }

    void add_bytes(std::string_view text, std::uint32_t from, std::uint32_t to) {
        if (text.empty()) return link(from, to);
        for (std::size_t i = 0; i < text.size(); ++i) {
            const std::uint32_t next = i + 1 == text.size() ? to : fresh();
            const auto byte = static_cast<std::uint8_t>(text[i]);
            bytes.add(from, {byte, byte, next});
            from = next;
        }
    }

    void add_set(const CodeSet& set, std::uint32_t from, std::uint32_t to) {
        for (const ByteSequence& sequence : utf8_sequences(set)) {
            std::uint32_t at = from;
            for (std::uint32_t i = 0; i < sequence.n; ++i) {
                const std::uint32_t next = i + 1 == sequence.n ? to : fresh();
                bytes.add(at, {sequence.low[i], sequence.high[i], next});
                at = next;
            }
        }
    }

    void add_call(NodeId body, const std::string& name, std::uint32_t min, std::uint32_t max, std::uint32_t from,
                  std::uint32_t to, Item item = Item::none, std::uint32_t list = 0) {
        if (rules_.nullable(body)) min = 0;
        if (min == 0) link(from, to);
        calls.add(from, {unit_of(body, name), std::max(min, 1u), max == kNoLimit ? 0 : max, to, item, list});
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
                if (node.item == Item::other && !tells_texts_) return add(node.children[0], from, to);
                if (node.item == Item::none && rules_.inlined(node.rule)) return add(rule.body, from, to);
                return add_call(rule.body, rule.name, 1, 1, from, to, node.item, node.min);
            }
        }
    }

    const Grammar& grammar_;
    Rules rules_;
    Limit& limit_;
    std::vector<Unit>& units_;
    const bool tells_texts_;
    std::unordered_map<NodeId, std::uint32_t> unit_of_;
    std::uint32_t n_ = 0, depth_ = 0;
};

/// Sets of fragments as states.
class Builder {
public:
    Builder(const Grammar& grammar, std::size_t max_states, bool tells_texts)
        : grammar_(grammar), limit_(max_states), fragments_(grammar, limit_, out_.units, tells_texts) {}

    Automaton build() {
        const Rule& root = grammar_.rules[grammar_.root];
        (void)fragments_.unit_of(root.body, root.name);
        for (std::size_t u = 0; u < out_.units.size(); ++u) build_unit(static_cast<std::uint32_t>(u));
        return std::move(out_);
    }

private:
    /// The state of all places that can be reached from `seeds` without a byte.
    std::uint32_t state_of(std::span<const std::uint32_t> seeds) {
        ++stamp_;
        stamps_.resize(fragments_.size());
        set_.clear();
        left_.assign(seeds.begin(), seeds.end());
        while (!left_.empty()) {
            limit_.count_work(1);
            const std::uint32_t s = left_.back();
            left_.pop_back();
            if (stamps_[s] == stamp_) continue;
            stamps_[s] = stamp_;
            if (fragments_.bytes.has(s) || fragments_.calls.has(s) || s == kStart || s == kEnd) set_.push_back(s);
            fragments_.empty.visit(s, [&](std::uint32_t to) { left_.push_back(to); });
        }
        std::sort(set_.begin(), set_.end());
        limit_.count_work(set_.size() + 1);
        const auto [number, is_new] = sets_.number_of(set_);
        if (is_new) {
            limit_.check_states(out_.states.size() + 1);
            out_.states.push_back({.unit = unit_});
        }
        return first_ + number;
    }

    void add_ranges(const std::vector<std::uint32_t>& set, State& state) {
        edges_.clear();
        std::uint64_t cuts[5] = {};  // bits of the bytes that edges begin or end at
        const auto cut = [&](std::uint32_t byte) { cuts[byte / 64] |= std::uint64_t{1} << byte % 64; };
        for (const std::uint32_t s : set)
            fragments_.bytes.visit(s, [&](const ByteRange& edge) {
                edges_.push_back(edge);
                cut(edge.low), cut(edge.high + 1u);
            });
        const auto next_cut = [&](std::uint32_t byte) {
            std::uint32_t word = byte / 64;
            std::uint64_t bits = cuts[word] >> byte % 64 << byte % 64;
            while (bits == 0 && ++word < 5) bits = cuts[word];
            return bits ? word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)) : 256;
        };
        for (std::uint32_t low = next_cut(0); low < 256;) {
            const std::uint32_t end = next_cut(low + 1);
            targets_.clear();
            for (const ByteRange& edge : edges_)
                if (edge.low <= low && low <= edge.high) targets_.push_back(edge.target);
            limit_.count_work(edges_.size());
            if (!targets_.empty()) {
                const std::uint32_t target = state_of(targets_);
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
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, Item, std::uint32_t>,
                 std::vector<std::uint32_t>>
            targets;
        for (const std::uint32_t s : set)
            fragments_.calls.visit(s, [&](const Call& call) {
                targets[{call.callee, call.min, call.max, call.item, call.list}].push_back(call.target);
            });
        for (auto& [call, to] : targets) {
            const auto [callee, min, max, item, list] = call;
            state.calls.push_back({callee, min, max, state_of(to), item, list});
        }
    }

    void build_unit(std::uint32_t unit) {
        stamps_.clear();
        sets_.clear();
        unit_ = unit;
        fragments_.make(out_.units[unit].body);
        const auto first = first_ = static_cast<std::uint32_t>(out_.states.size());
        constexpr std::uint32_t kSeeds[] = {kStart};  // in a set, so that the unit's first state is no other
        out_.units[unit].start = state_of(kSeeds);
        std::vector<std::uint32_t> set;
        for (std::uint32_t i = first; i < out_.states.size(); ++i) {
            const std::span<const std::uint32_t> known = sets_[i - first];
            set.assign(known.begin(), known.end());
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
    ListNumbers sets_;  // by state, from first_ on
    std::uint32_t stamp_ = 0, unit_ = 0, first_ = 0;
    std::vector<std::uint32_t> set_, left_, targets_;  // scratch
    std::vector<ByteRange> edges_;
};

}  // namespace

std::uint32_t State::next(std::uint8_t byte) const {
    for (const ByteRange& range : ranges)
        if (byte <= range.high) return byte >= range.low ? range.target : kNoTarget;
    return kNoTarget;
}

Automaton build_automaton(const Grammar& grammar, std::size_t max_states, bool tells_texts) {
    return Builder(grammar, max_states, tells_texts).build();
}

}  // namespace fovea::grammar
