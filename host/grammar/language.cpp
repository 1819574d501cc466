#include "host/grammar/language.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/format/utf8.h"
#include "host/base/list_numbers.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostStates = 20'000, kMostWork = 2'000'000;
constexpr std::uint32_t kDead = 0xffffffffu;

[[noreturn]] void refuse_size() {
    throw GrammarError("expected rules for a text that tell at most " + std::to_string(kMostStates) +
                       " states apart, got more");
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
    [[nodiscard]] std::size_t size() const { return places_.size(); }

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
    explicit Subsets(const Places& places) : places_(places), stamps_(places.size()) {}

    std::uint32_t number_of(std::vector<std::uint32_t> seeds) {
        ++stamp_;
        std::vector<std::uint32_t> set;
        while (!seeds.empty()) {
            const std::uint32_t place = seeds.back();
            seeds.pop_back();
            if (++work_ > kMostWork) refuse_size();
            if (std::exchange(stamps_[place], stamp_) == stamp_) continue;
            set.push_back(place);
            seeds.insert(seeds.end(), places_[place].empty.begin(), places_[place].empty.end());
        }
        std::sort(set.begin(), set.end());
        const std::uint32_t number = sets_.number_of(set).first;
        if (sets_.size() > kMostStates) refuse_size();
        return number;
    }
    [[nodiscard]] std::uint32_t size() const { return sets_.size(); }
    [[nodiscard]] bool has(std::uint32_t number, std::uint32_t place) const {
        return std::binary_search(sets_[number].begin(), sets_[number].end(), place);
    }

    /// Where the characters lead that the edges of a set's places tell apart: `visit(low, high, state)` for each part.
    void visit_parts(std::uint32_t number, const auto& visit) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> starts, ends;  // with the target of an edge
        for (const std::uint32_t place : sets_[number])
            for (const auto& [codes, target] : places_[place].edges)
                for (const CodeRange& range : codes) {
                    starts.emplace_back(range.low, target);
                    ends.emplace_back(range.high + 1, target);
                }
        std::sort(starts.begin(), starts.end());
        std::sort(ends.begin(), ends.end());
        std::map<std::vector<std::uint32_t>, std::uint32_t> known;
        std::vector<std::uint32_t> targets;  // of the edges that have the characters from `low` on
        std::uint32_t low = 0;
        for (std::size_t s = 0, e = 0; e < ends.size();) {
            const std::uint32_t next = s < starts.size() ? std::min(starts[s].first, ends[e].first) : ends[e].first;
            if (!targets.empty() && low < next) {
                const auto [place, is_new] = known.try_emplace(targets, 0);
                if (is_new) place->second = number_of(targets);
                visit(low, next - 1, place->second);
            }
            low = next;
            for (; e < ends.size() && ends[e].first == next; ++e)
                targets.erase(std::lower_bound(targets.begin(), targets.end(), ends[e].second));
            for (; s < starts.size() && starts[s].first == next; ++s)
                targets.insert(std::lower_bound(targets.begin(), targets.end(), starts[s].second), starts[s].second);
        }
    }

private:
    const Places& places_;
    ListNumbers sets_;
    std::vector<std::uint32_t> stamps_;
    std::uint32_t stamp_ = 0;
    std::size_t work_ = 0;
};

}  // namespace

void Language::State::add(Range range) {
    if (!ranges.empty() && ranges.back().target == range.target && ranges.back().high + 1 == range.low)
        ranges.back().high = range.high;
    else
        ranges.push_back(range);
}

Language Language::all() {
    Language out;
    out.states_ = {{true}};
    for (const CodeRange& range : complement({})) out.states_[0].add({range.low, range.high, 0});
    return out;
}

Language Language::of(const Grammar& grammar, NodeId node) {
    Places places(grammar);
    const std::uint32_t from = places.fresh(), to = places.fresh();
    places.add(node, from, to);
    Subsets subsets(places);
    (void)subsets.number_of({from});
    Language out;
    for (std::uint32_t i = 0; i < subsets.size(); ++i) {
        State state{subsets.has(i, to)};
        subsets.visit_parts(i, [&](std::uint32_t low, std::uint32_t high, std::uint32_t target) {
            state.add({low, high, target});
        });
        out.states_.push_back(std::move(state));
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
        if (i < last || max == kNoLimit)
            for (const CodeRange& range : complement({})) state.add({range.low, range.high, std::min(i + 1, last)});
        out.states_.push_back(std::move(state));
    }
    return out;
}

std::vector<std::uint32_t> Language::ways_out() const {
    std::vector<std::vector<std::uint32_t>> comes_from(states_.size());
    std::vector<std::uint32_t> out(states_.size(), kNoLimit), found;
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
        for (const Range& range : states_[i].ranges) comes_from[range.target].push_back(i);
        if (states_[i].accepts) out[i] = 0, found.push_back(i);
    }
    for (std::size_t i = 0; i < found.size(); ++i)
        for (const std::uint32_t from : comes_from[found[i]])
            if (out[from] == kNoLimit) out[from] = out[found[i]] + 1, found.push_back(from);
    return out;
}

/// Pairs of a state and the characters before it, without those from which no text ends in time.
std::optional<Language> Language::within(std::uint32_t min, std::uint32_t max, std::size_t most_cost) const {
    const std::vector<std::uint32_t> left = ways_out();
    const std::uint32_t last = max == kNoLimit ? min : max;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    const auto number_of = [&](std::uint32_t state, std::uint32_t n) {
        const auto [known, is_new] =
            numbers.try_emplace(std::uint64_t{state} << 32 | n, static_cast<std::uint32_t>(pairs.size()));
        if (is_new) pairs.emplace_back(state, n);
        return known->second;
    };
    if (!empty() && left[0] <= max) (void)number_of(0, 0);
    Language out;
    std::size_t cost = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto [at, n] = pairs[i];
        State state{states_[at].accepts && n >= min};
        for (const Range& range : states_[at].ranges)
            if (max == kNoLimit || left[range.target] + n < max)
                state.add({range.low, range.high, number_of(range.target, std::min(n + 1, last))});
        cost += state.cost();
        if (cost > 2 * most_cost || pairs.size() > kMostStates) return std::nullopt;  // some may end too early
        out.states_.push_back(std::move(state));
    }
    out.drop_dead_ends();
    if (out.cost() > most_cost) return std::nullopt;
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
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    const auto number_of = [&](std::uint32_t x, std::uint32_t y) {
        const auto [known, is_new] =
            numbers.try_emplace(std::uint64_t{x} << 32 | y, static_cast<std::uint32_t>(pairs.size()));
        if (is_new) pairs.emplace_back(x, y);
        if (pairs.size() > kMostStates) refuse_size();
        return known->second;
    };
    (void)number_of(a.empty() ? kDead : 0, b.empty() ? kDead : 0);
    const State dead;
    Language out;
    std::size_t work = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const State &x = pairs[i].first == kDead ? dead : a.states_[pairs[i].first],
                    &y = pairs[i].second == kDead ? dead : b.states_[pairs[i].second];
        work += x.ranges.size() + y.ranges.size();
        if (work > kMostWork) refuse_size();
        State state{accepts(x.accepts, y.accepts)};
        auto in_x = x.ranges.begin(), in_y = y.ranges.begin();
        for (std::uint32_t low = 0; in_x != x.ranges.end() || in_y != y.ranges.end();) {
            std::uint32_t high = kLastCode, to[] = {kDead, kDead};  // of a part that no range begins or ends within
            const auto look = [&](const Range& range, std::uint32_t& target) {
                if (range.low <= low) target = range.target;
                high = std::min(high, range.low <= low ? range.high : range.low - 1);
            };
            if (in_x != x.ranges.end()) look(*in_x, to[0]);
            if (in_y != y.ranges.end()) look(*in_y, to[1]);
            if (to[0] == kDead ? only_b && to[1] != kDead : only_a || to[1] != kDead)
                state.add({low, high, number_of(to[0], to[1])});
            low = high + 1;
            if (in_x != x.ranges.end() && in_x->high < low) ++in_x;
            if (in_y != y.ranges.end() && in_y->high < low) ++in_y;
        }
        out.states_.push_back(std::move(state));
    }
    out.drop_dead_ends();
    return out;
}

/// Leaves out states from which no text ends.
void Language::drop_dead_ends() {
    const std::vector<std::uint32_t> left = ways_out();
    if (empty() || left[0] == kNoLimit) return states_.clear();
    std::vector<std::uint32_t> number;
    std::uint32_t n = 0;
    for (const std::uint32_t way : left) number.push_back(way == kNoLimit ? kDead : n++);
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
        if (number[i] == kDead) continue;
        State state = std::move(states_[i]);
        std::erase_if(state.ranges, [&](const Range& range) { return number[range.target] == kDead; });
        for (Range& range : state.ranges) range.target = number[range.target];
        states_[number[i]] = std::move(state);
    }
    states_.resize(n);
}

Language Language::minimal() const {
    std::vector<std::uint32_t> kind(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) kind[i] = states_[i].accepts;
    Language out;
    for (std::size_t n = 0;;) {
        ListNumbers kinds;
        std::vector<std::uint32_t> next, words;
        out.states_.clear();
        for (std::size_t i = 0; i < states_.size(); ++i) {
            State state{states_[i].accepts};
            for (const Range& range : states_[i].ranges) state.add({range.low, range.high, kind[range.target]});
            words.assign(1, kind[i]);
            for (const Range& range : state.ranges) words.insert(words.end(), {range.low, range.high, range.target});
            const auto [number, is_new] = kinds.number_of(words);
            if (is_new) out.states_.push_back(std::move(state));
            next.push_back(number);
        }
        kind = std::move(next);
        if (kinds.size() == n) return out;  // the targets are kinds of the last round, which are those of this one
        n = kinds.size();
    }
}

bool Language::is_endless() const {
    // Where texts come to an end, some state leads nowhere.
    return !empty() && std::none_of(states_.begin(), states_.end(), [](const State& s) { return s.ranges.empty(); });
}

bool Language::has(std::string_view text) const {
    if (empty()) return false;
    std::uint32_t at = 0;
    for (std::uint32_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
        const Character c = first_character(text);
        bytes = c.bytes;
        const std::vector<Range>& ranges = states_[at].ranges;
        const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) { return c.code <= r.high; });
        if (range == ranges.end() || c.code < range->low) return false;
        at = range->target;
    }
    return states_[at].accepts;
}

std::size_t Language::State::cost() const {
    constexpr std::size_t kBeyondAscii = 8;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;  // of ranges, by target
    for (const Range& range : ranges) ends.emplace_back(range.target, range.high);
    std::sort(ends.begin(), ends.end());
    std::size_t cost = 0;
    for (std::size_t i = 0; i < ends.size(); ++i)
        if (i + 1 == ends.size() || ends[i].first != ends[i + 1].first)
            cost += ends[i].second < 0x80 ? 1 : kBeyondAscii;
    return cost;
}

std::size_t Language::cost() const {
    std::size_t cost = 0;
    for (const State& state : states_) cost += state.cost();
    return cost;
}

NodeId Language::write(Grammar& grammar, const WriteSet& write_set) const {
    if (empty()) return grammar.choice({});
    std::map<std::vector<std::uint32_t>, NodeId> labels;
    Graph graph;
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
        graph.accepts.push_back(states_[i].accepts);
        std::map<std::uint32_t, CodeSet> edges;
        for (const Range& range : states_[i].ranges) edges[range.target].push_back({range.low, range.high});
        for (const auto& [target, set] : edges) {
            std::vector<std::uint32_t> codes;
            for (const CodeRange& range : set) codes.insert(codes.end(), {range.low, range.high});
            const auto [label, is_new] = labels.try_emplace(std::move(codes), 0);
            if (is_new) label->second = write_set(set);
            graph.edges.push_back({i, target, label->second});
        }
    }
    return grammar.graph(std::move(graph));
}

}  // namespace fovea::grammar
