#include "host/grammar/language.h"

#include <algorithm>
#include <map>

#include "engine/format/utf8.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostStates = 20'000, kMostWork = 2'000'000;
constexpr std::uint32_t kDead = 0xffffffffu;

[[noreturn]] void refuse_size() {
    throw GrammarError("expected rules for a text that tell at most " + std::to_string(kMostStates) +
                       " states apart, got more");
}

/// The parts that sets cut the characters into, each with those of the sets that have it.
std::vector<std::pair<CodeSet, std::vector<std::uint32_t>>> parts_of(
    const std::vector<std::pair<const CodeSet*, std::uint32_t>>& sets) {
    std::vector<std::uint32_t> cuts;
    for (const auto& [set, target] : sets)
        for (const CodeRange& range : *set) cuts.insert(cuts.end(), {range.low, range.high + 1});
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::map<std::vector<std::uint32_t>, CodeSet> parts;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        std::vector<std::uint32_t> targets;
        for (const auto& [set, target] : sets) {
            const auto after = std::upper_bound(set->begin(), set->end(), cuts[i],
                                                [](std::uint32_t code, const CodeRange& r) { return code < r.low; });
            if (after != set->begin() && std::prev(after)->high >= cuts[i]) targets.push_back(target);
        }
        if (!targets.empty()) parts[targets].push_back({cuts[i], cuts[i + 1] - 1});
    }
    std::vector<std::pair<CodeSet, std::vector<std::uint32_t>>> out;
    for (auto& [targets, set] : parts) out.emplace_back(normalize(std::move(set)), targets);
    return out;
}

/// States with edges that may be empty (Thompson 1968).
class Places {
public:
    explicit Places(const Grammar& grammar) : grammar_(grammar) {}

    struct Place {
        std::vector<std::uint32_t> empty;
        std::vector<std::pair<CodeSet, std::uint32_t>> edges;
    };

    std::uint32_t fresh() {
        if (places_.size() == kMostStates) refuse_size();
        places_.emplace_back();
        return static_cast<std::uint32_t>(places_.size() - 1);
    }
    const Place& operator[](std::uint32_t i) const { return places_[i]; }

    void add(NodeId id, std::uint32_t from, std::uint32_t to) {
        const Node& node = grammar_.nodes[id];
        switch (node.kind) {
            case NodeKind::bytes: return add_text(node.text, from, to);
            case NodeKind::set: return add_edge(from, node.set, to);
            case NodeKind::choice:
                for (const NodeId child : node.children) add(child, from, to);
                return;
            case NodeKind::sequence:
                for (const NodeId child : node.children) from = add_after(child, from);
                return link(from, to);
            case NodeKind::repeat: return add_repeat(node, from, to);
            case NodeKind::graph: return add_graph(node, from, to);
            case NodeKind::rule:
            case NodeKind::list: refuse_size();
        }
    }
    void add_text(std::string_view text, std::uint32_t from, std::uint32_t to) {
        while (!text.empty()) {
            const Character c = first_character(text);
            const std::uint32_t next = fresh();
            add_edge(from, {{c.code, c.code}}, next);
            text.remove_prefix(c.bytes);
            from = next;
        }
        link(from, to);
    }

private:
    void link(std::uint32_t from, std::uint32_t to) { places_[from].empty.push_back(to); }
    void add_edge(std::uint32_t from, const CodeSet& set, std::uint32_t to) {
        places_[from].edges.emplace_back(set, to);
    }
    std::uint32_t add_after(NodeId child, std::uint32_t from) {
        const std::uint32_t start = fresh(), end = fresh();  // so that repeated parts do not meet
        link(from, start);
        add(child, start, end);
        return end;
    }
    void add_repeat(const Node& node, std::uint32_t from, std::uint32_t to) {
        const bool open = node.max == kNoLimit;
        for (std::uint32_t i = 0; i < (open ? node.min : node.max); ++i) {
            if (i >= node.min) link(from, to);
            from = add_after(node.children[0], from);
        }
        if (open) {
            const std::uint32_t loop = fresh();
            link(from, loop);
            link(add_after(node.children[0], loop), loop);
            from = loop;
        }
        link(from, to);
    }
    void add_graph(const Node& node, std::uint32_t from, std::uint32_t to) {
        const Graph& graph = grammar_.graphs[node.rule];
        std::vector<std::uint32_t> places;
        for (std::size_t i = 0; i < graph.accepts.size(); ++i) {
            places.push_back(fresh());
            if (graph.accepts[i]) link(places[i], to);
        }
        link(from, places[0]);
        for (const GraphEdge& edge : graph.edges) add(edge.label, places[edge.from], places[edge.to]);
    }

    const Grammar& grammar_;
    std::vector<Place> places_;
};

/// Sets of places as states (Rabin and Scott 1959).
class Subsets {
public:
    explicit Subsets(const Places& places) : places_(places) {}

    std::uint32_t number_of(std::vector<std::uint32_t> seeds) {
        std::vector<std::uint32_t> set;
        while (!seeds.empty()) {
            const std::uint32_t place = seeds.back();
            seeds.pop_back();
            if (const auto at = std::lower_bound(set.begin(), set.end(), place); at == set.end() || *at != place) {
                set.insert(at, place);
                seeds.insert(seeds.end(), places_[place].empty.begin(), places_[place].empty.end());
            }
            if (++work_ > kMostWork) refuse_size();
        }
        const auto [known, is_new] = numbers_.try_emplace(set, static_cast<std::uint32_t>(sets.size()));
        if (is_new) sets.push_back(std::move(set));
        if (sets.size() > kMostStates) refuse_size();
        return known->second;
    }

    std::vector<std::vector<std::uint32_t>> sets;

private:
    const Places& places_;
    std::map<std::vector<std::uint32_t>, std::uint32_t> numbers_;
    std::size_t work_ = 0;
};

}  // namespace

Language Language::all() {
    Language out;
    out.states_ = {{true, {{complement({}), 0}}}};
    return out;
}

Language Language::of(const Grammar& grammar, NodeId node) {
    Places places(grammar);
    const std::uint32_t from = places.fresh(), to = places.fresh();
    places.add(node, from, to);
    Subsets subsets(places);
    (void)subsets.number_of({from});
    Language out;
    for (std::size_t i = 0; i < subsets.sets.size(); ++i) {
        const std::vector<std::uint32_t> set = subsets.sets[i];
        std::vector<std::pair<const CodeSet*, std::uint32_t>> edges;
        for (const std::uint32_t place : set)
            for (const auto& [codes, target] : places[place].edges) edges.emplace_back(&codes, target);
        State& state = out.states_.emplace_back();
        state.accepts = std::binary_search(set.begin(), set.end(), to);
        for (auto& [codes, targets] : parts_of(edges)) state.edges.push_back({codes, subsets.number_of(targets)});
    }
    out.drop_dead_ends();
    return out;
}

Language Language::of_texts(std::span<const std::string> texts) {
    Grammar grammar;
    std::vector<NodeId> ways;
    for (const std::string& text : texts) ways.push_back(grammar.bytes(text));
    return of(grammar, grammar.choice(std::move(ways)));
}

Language Language::of_lengths(std::uint32_t min, std::uint32_t max) {
    Language out;
    const std::uint32_t last = max == kNoLimit ? min : max;
    if (last >= kMostStates) refuse_size();
    for (std::uint32_t i = 0; i <= last; ++i) {
        State state{i >= min};
        if (i < last || max == kNoLimit) state.edges.push_back({complement({}), std::min(i + 1, last)});
        out.states_.push_back(std::move(state));
    }
    return out;
}

Language Language::operator&(const Language& other) const {
    return combine(*this, other, [](bool a, bool b) { return a && b; });
}
Language Language::operator|(const Language& other) const {
    return combine(*this, other, [](bool a, bool b) { return a || b; });
}
Language Language::operator-(const Language& other) const {
    return combine(*this, other, [](bool a, bool b) { return a && !b; });
}

/// Pairs of states, of which one may be dead if a text of the other alone is accepted.
Language Language::combine(const Language& a, const Language& b, Accepts accepts) {
    const bool only_a = accepts(true, false), only_b = accepts(false, true);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    const auto number_of = [&](std::uint32_t x, std::uint32_t y) {
        const auto [known, is_new] = numbers.try_emplace({x, y}, static_cast<std::uint32_t>(pairs.size()));
        if (is_new) pairs.emplace_back(x, y);
        if (pairs.size() > kMostStates) refuse_size();
        return known->second;
    };
    (void)number_of(a.empty() ? kDead : 0, b.empty() ? kDead : 0);
    Language out;
    std::size_t work = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto [x, y] = pairs[i];
        std::vector<std::pair<const CodeSet*, std::uint32_t>> edges;
        const std::size_t n_a = x == kDead ? 0 : a.states_[x].edges.size();
        for (std::size_t e = 0; e < n_a; ++e)
            edges.emplace_back(&a.states_[x].edges[e].set, static_cast<std::uint32_t>(e));
        for (std::size_t e = 0; y != kDead && e < b.states_[y].edges.size(); ++e)
            edges.emplace_back(&b.states_[y].edges[e].set, static_cast<std::uint32_t>(n_a + e));
        for (const auto& [set, which] : edges) work += set->size();
        if (work > kMostWork) refuse_size();
        State state;
        state.accepts = accepts(x != kDead && a.states_[x].accepts, y != kDead && b.states_[y].accepts);
        for (auto& [codes, which] : parts_of(edges)) {
            std::uint32_t to_a = kDead, to_b = kDead;
            for (const std::uint32_t e : which)
                (e < n_a ? to_a : to_b) = e < n_a ? a.states_[x].edges[e].target : b.states_[y].edges[e - n_a].target;
            if ((to_a == kDead && !only_b) || (to_b == kDead && !only_a)) continue;
            state.edges.push_back({codes, number_of(to_a, to_b)});
        }
        out.states_.push_back(std::move(state));
    }
    out.drop_dead_ends();
    return out;
}

/// Leaves out states from which no text ends, and joins edges that lead to the same state.
void Language::drop_dead_ends() {
    std::vector<std::vector<std::uint32_t>> comes_from(states_.size());
    std::vector<bool> ends(states_.size());
    std::vector<std::uint32_t> left, number(states_.size(), kDead);
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
        for (const Edge& edge : states_[i].edges) comes_from[edge.target].push_back(i);
        if (states_[i].accepts) left.push_back(i);
    }
    while (!left.empty()) {
        const std::uint32_t i = left.back();
        left.pop_back();
        if (ends[i]) continue;
        ends[i] = true;
        left.insert(left.end(), comes_from[i].begin(), comes_from[i].end());
    }
    std::vector<State> kept;
    if (!ends.empty() && ends[0]) {
        std::uint32_t n = 0;
        for (std::uint32_t i = 0; i < states_.size(); ++i)
            if (ends[i]) number[i] = n++;
        for (std::uint32_t i = 0; i < states_.size(); ++i) {
            if (!ends[i]) continue;
            std::map<std::uint32_t, CodeSet> edges;
            for (const Edge& edge : states_[i].edges)
                if (ends[edge.target]) {
                    CodeSet& set = edges[number[edge.target]];
                    set.insert(set.end(), edge.set.begin(), edge.set.end());
                }
            State& state = kept.emplace_back(State{states_[i].accepts});
            for (auto& [target, set] : edges) state.edges.push_back({normalize(std::move(set)), target});
        }
    }
    states_ = std::move(kept);
}

Language Language::minimal() const {
    std::vector<std::uint32_t> kind(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) kind[i] = states_[i].accepts;
    std::vector<State> kept;
    for (std::size_t n = 0;;) {
        std::map<std::pair<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint32_t>>>, std::uint32_t> kinds;
        std::vector<std::uint32_t> next;
        kept.clear();
        for (std::size_t i = 0; i < states_.size(); ++i) {
            std::map<std::uint32_t, CodeSet> sets;
            for (const Edge& edge : states_[i].edges) {
                CodeSet& set = sets[kind[edge.target]];
                set.insert(set.end(), edge.set.begin(), edge.set.end());
            }
            State state{states_[i].accepts};
            std::map<std::uint32_t, std::vector<std::uint32_t>> codes;
            for (auto& [target, set] : sets) {
                state.edges.push_back({normalize(std::move(set)), target});
                for (const CodeRange& range : state.edges.back().set)
                    codes[target].insert(codes[target].end(), {range.low, range.high});
            }
            const auto number = static_cast<std::uint32_t>(kinds.size());
            const auto [place, is_new] = kinds.try_emplace({kind[i], std::move(codes)}, number);
            if (is_new) kept.push_back(std::move(state));
            next.push_back(place->second);
        }
        const bool done = kinds.size() == n;
        n = kinds.size();
        kind = std::move(next);
        if (done) break;
    }
    Language out;
    out.states_ = std::move(kept);  // their targets are kinds of the last round, which are those of this one
    return out;
}

bool Language::is_endless() const {
    // Where texts come to an end, some state leads nowhere.
    return !empty() && std::none_of(states_.begin(), states_.end(), [](const State& s) { return s.edges.empty(); });
}

bool Language::has(std::string_view text) const {
    if (empty()) return false;
    std::uint32_t at = 0;
    for (std::uint32_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
        const Character c = first_character(text);
        bytes = c.bytes;
        const auto edge = std::find_if(states_[at].edges.begin(), states_[at].edges.end(), [&](const Edge& one) {
            return !intersect(one.set, CodeSet{{c.code, c.code}}).empty();
        });
        if (edge == states_[at].edges.end()) return false;
        at = edge->target;
    }
    return states_[at].accepts;
}

std::size_t Language::cost() const {
    constexpr std::size_t kBeyondAscii = 8;
    std::size_t cost = 0;
    for (const State& state : states_)
        for (const Edge& edge : state.edges) cost += edge.set.back().high < 0x80 ? 1 : kBeyondAscii;
    return cost;
}

NodeId Language::write(Grammar& grammar, const WriteSet& write_set) const {
    if (empty()) return grammar.choice({});
    std::map<std::vector<std::uint32_t>, NodeId> labels;
    Graph graph;
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
        graph.accepts.push_back(states_[i].accepts);
        for (const Edge& edge : states_[i].edges) {
            std::vector<std::uint32_t> codes;
            for (const CodeRange& range : edge.set) codes.insert(codes.end(), {range.low, range.high});
            const auto [label, is_new] = labels.try_emplace(std::move(codes), 0);
            if (is_new) label->second = write_set(edge.set);
            graph.edges.push_back({i, edge.target, label->second});
        }
    }
    return grammar.graph(std::move(graph));
}

}  // namespace fovea::grammar
