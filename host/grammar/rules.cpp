// Facts about rules, found before automata are made of them: which may be empty, how large they are, and which become
// part of their users.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "host/grammar/automaton.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

constexpr std::uint32_t kMostSize = 1u << 20;

// A rule that is used once becomes part of its user up to the first size, any other up to the second.
constexpr std::uint32_t kMostOnce = 2000, kMostInlined = 32;
constexpr std::uint32_t kMostNested = 40;  // rules that are parts of parts

[[nodiscard]] std::uint32_t sum_of_sizes(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(a + b, kMostSize));
}

/// The nodes of bodies: a node may stand below several, and in one of them in many places.
class Bodies {
public:
    explicit Bodies(const Grammar& grammar) : grammar_(grammar), seen_(grammar.nodes.size()) {}

    /// Each node of a body once, before those that hold it.
    std::vector<NodeId> nodes_of(NodeId body) {
        ++n_asked_;
        std::vector<NodeId> all, left{body};
        while (!left.empty()) {
            const NodeId id = left.back();
            left.pop_back();
            if (std::exchange(seen_[id], n_asked_) == n_asked_) continue;
            all.push_back(id);
            left.insert(left.end(), grammar_.nodes[id].children.begin(), grammar_.nodes[id].children.end());
        }
        std::sort(all.begin(), all.end());
        return all;
    }

private:
    const Grammar& grammar_;
    std::vector<std::uint32_t> seen_;  // by the call that saw it last
    std::uint32_t n_asked_ = 0;
};

/// The rules that a body uses; those it uses more than once are listed twice.
std::vector<RuleId> uses_in(const Grammar& grammar, const std::vector<NodeId>& nodes) {
    std::vector<RuleId> uses;
    std::unordered_map<NodeId, std::uint32_t> times;
    times[nodes.back()] = 1;
    for (std::size_t i = nodes.size(); i-- > 0;) {
        const Node& node = grammar.nodes[nodes[i]];
        const std::uint32_t n = times[nodes[i]];
        for (const NodeId child : node.children) times[child] = std::min(times[child] + n, 2u);
        if (node.kind == NodeKind::rule) uses.insert(uses.end(), n, node.rule);
    }
    return uses;
}

}  // namespace

Rules::Rules(const Grammar& grammar)
    : grammar_(grammar),
      nullable_(grammar.nodes.size()),
      nullable_rules_(grammar.rules.size()),
      inlined_(grammar.rules.size()),
      size_(grammar.nodes.size()),
      uses_(grammar.rules.size()) {
    Bodies bodies(grammar);
    for (RuleId r = 0; r < grammar.rules.size(); ++r)
        uses_[r] = uses_in(grammar, bodies.nodes_of(grammar.rules[r].body));
    find_nullable();
    find_sizes();
}

bool Rules::may_be_empty(const Node& node) const {
    const auto is = [&](NodeId child) { return bool{nullable_[child]}; };
    switch (node.kind) {
        case NodeKind::bytes: return node.text.empty();
        case NodeKind::set: return false;
        case NodeKind::sequence: return std::all_of(node.children.begin(), node.children.end(), is);
        case NodeKind::choice: return std::any_of(node.children.begin(), node.children.end(), is);
        case NodeKind::repeat: return node.min == 0 || nullable_[node.children[0]];
        case NodeKind::rule: return nullable_rules_[node.rule];
        case NodeKind::list:
            for (std::size_t i = 0; i < node.text.size(); ++i)
                if (node.text[i] == kRequired && !nullable_[node.children[i]]) return false;
            return true;
        case NodeKind::graph: return grammar_.graphs[node.rule].accepts[0];
    }
    return false;
}

void Rules::find_nullable() {
    for (bool changed = true; changed;) {
        changed = false;
        for (NodeId i = 0; i < grammar_.nodes.size(); ++i) nullable_[i] = may_be_empty(grammar_.nodes[i]);
        for (RuleId r = 0; r < grammar_.rules.size(); ++r) {
            if (nullable_rules_[r] || !nullable_[grammar_.rules[r].body]) continue;
            nullable_rules_[r] = changed = true;
        }
    }
}

std::uint32_t Rules::size_of(const Node& node) const {
    std::uint32_t size = 0;
    for (const NodeId child : node.children) size = sum_of_sizes(size, size_[child]);
    switch (node.kind) {
        case NodeKind::bytes: return sum_of_sizes(node.text.size(), 0);
        case NodeKind::set: return node.set.empty() || node.set.back().high < 0x80 ? 1 : 6;
        case NodeKind::repeat: {  // as Builder::add_repeat writes it
            const std::uint64_t n = node.max == kNoLimit ? node.min : node.max;
            if (n > 1 && size * n > kMostUnrolled) return 2;
            return sum_of_sizes(size * n, node.max == kNoLimit ? size : 0);
        }
        case NodeKind::rule: return inlined_[node.rule] ? size_[grammar_.rules[node.rule].body] : 1;
        case NodeKind::list: return sum_of_sizes(size, 3 * node.children.size());
        default: return size;
    }
}

/// Goes from rules that use no others upwards. Rules that lead to a cycle are never reached, and stay rules.
void Rules::find_sizes() {
    const std::size_t n_rules = grammar_.rules.size();
    std::vector<std::uint32_t> n_left(n_rules), n_users(n_rules), nested(n_rules);
    std::vector<std::vector<RuleId>> users(n_rules);
    std::vector<RuleId> ready;
    for (RuleId r = 0; r < n_rules; ++r) {
        n_left[r] = static_cast<std::uint32_t>(uses_[r].size());
        for (const RuleId used : uses_[r]) {
            users[used].push_back(r);
            ++n_users[used];
        }
        if (uses_[r].empty()) ready.push_back(r);
    }
    // A node may stand below several bodies, so sizes are found anew for each body.
    Bodies bodies(grammar_);
    const auto measure = [&](NodeId body) {
        for (const NodeId id : bodies.nodes_of(body)) size_[id] = size_of(grammar_.nodes[id]);
    };
    std::vector<bool> measured(n_rules);
    for (std::size_t i = 0; i < ready.size(); ++i) {
        const RuleId r = ready[i];
        const Rule& rule = grammar_.rules[r];
        measure(rule.body);
        measured[r] = true;
        for (const RuleId used : uses_[r])
            if (inlined_[used]) nested[r] = std::max(nested[r], nested[used] + 1);
        const std::uint32_t size = size_[rule.body], most = n_users[r] == 1 ? kMostOnce : kMostInlined;
        inlined_[r] = !rule.shared && r != grammar_.root && size <= most && nested[r] < kMostNested;
        for (const RuleId user : users[r])
            if (--n_left[user] == 0) ready.push_back(user);
    }
    for (RuleId r = 0; r < n_rules; ++r)
        if (!measured[r]) measure(grammar_.rules[r].body);
}

}  // namespace fovea::grammar
