#include <algorithm>
#include <array>
#include <map>

#include "convert/tokenizers/pattern.h"
#include "convert/tokenizers/tokenizer_spelling.h"
#include "engine/format/tables.h"
#include "engine/format/utf8.h"

namespace fovea {
namespace {

constexpr std::size_t kMostStates = 4096;

/// Classes: code points that every set has, or has not, alike.
struct CharacterClasses {
    std::vector<std::uint32_t> runs;   // first code point << 8 | class
    std::vector<std::string> members;  // [class][set], 0 or 1
    [[nodiscard]] std::uint8_t of(std::uint32_t code) const { return value_at(runs, code); }
};

CharacterClasses make_classes(const std::vector<CodeSet>& sets, const RefusePattern& refuse) {
    std::vector<std::uint32_t> borders = {0};
    for (const CodeSet& set : sets)
        for (const auto& [first, end] : set.stretches()) {
            borders.push_back(first);
            if (end < kCodeEnd) borders.push_back(end);
        }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    CharacterClasses classes;
    std::map<std::string, std::uint32_t> known;
    std::string member(sets.size(), '\0');
    for (const std::uint32_t border : borders) {
        for (std::size_t i = 0; i < sets.size(); ++i) member[i] = sets[i].has(border);
        const auto [found, is_new] = known.emplace(member, static_cast<std::uint32_t>(known.size()));
        if (is_new) classes.members.push_back(member);
        if (found->second >= kMaxClasses) refuse("a pattern that tells fewer kinds of characters apart");
        if (classes.runs.empty() || (classes.runs.back() & 0xff) != found->second)
            classes.runs.push_back(border << 8 | found->second);
    }
    return classes;
}

/// A state is a list of nodes that may go on, most preferred first: as they were reached, before forks and looks are
/// followed, since looks depend on the next character.
class Compiler {
public:
    Compiler(const PatternNodes& nodes, const CharacterClasses& classes, const RefusePattern& refuse)
        : nodes_(nodes), classes_(classes), refuse_(refuse), n_columns_(classes.members.size() + 1) {}

    std::vector<std::uint16_t> run() {
        states_.emplace_back();  // the end
        number(std::vector<std::uint32_t>{nodes_.start});
        for (std::size_t state = 1; state < states_.size(); ++state) {
            transitions_.resize((state + 1) * n_columns_, 0);
            for (std::size_t column = 0; column < n_columns_; ++column) {
                const std::uint16_t cell = transition(states_[state], column);
                if (state == kStartState && (cell & kMatchBefore)) refuse_("a pattern that matches no empty text");
                transitions_[state * n_columns_ + column] = cell;
            }
        }
        return std::move(transitions_);
    }

    [[nodiscard]] std::size_t n_states() const { return states_.size(); }

private:
    std::uint16_t number(const std::vector<std::uint32_t>& state) {
        if (state.empty()) return 0;
        const auto [found, is_new] = known_.emplace(state, static_cast<std::uint16_t>(states_.size()));
        if (is_new) states_.push_back(state);
        if (states_.size() > kMostStates) refuse_("a pattern of at most " + std::to_string(kMostStates) + " states");
        return found->second;
    }

    std::uint16_t transition(const std::vector<std::uint32_t>& state, std::size_t column) {
        const bool at_end = column + 1 == n_columns_;
        const auto holds = [&](const PatternNode& node) {
            return at_end ? node.at_end : static_cast<bool>(classes_.members[column][node.set]);
        };
        std::vector<std::uint32_t> next, stack(state.rbegin(), state.rend());
        std::vector<bool> seen(nodes_.nodes.size()), reached(nodes_.nodes.size());
        while (!stack.empty()) {
            const std::uint32_t index = stack.back();
            stack.pop_back();
            if (seen[index]) continue;
            seen[index] = true;
            const PatternNode& node = nodes_.nodes[index];
            if (node.kind == PatternNode::Kind::match)  // what is less preferred ends here
                return static_cast<std::uint16_t>(kMatchBefore | number(next));
            if (node.kind == PatternNode::Kind::fork) {
                stack.push_back(node.other);
                stack.push_back(node.next);
            } else if (node.kind == PatternNode::Kind::look) {
                if (holds(node)) stack.push_back(node.next);
            } else if (!at_end && holds(node) && !reached[node.next]) {
                reached[node.next] = true;
                next.push_back(node.next);
            }
        }
        return number(next);
    }

    const PatternNodes& nodes_;
    const CharacterClasses& classes_;
    const RefusePattern& refuse_;
    const std::size_t n_columns_;
    std::vector<std::vector<std::uint32_t>> states_;
    std::map<std::vector<std::uint32_t>, std::uint16_t> known_;
    std::vector<std::uint16_t> transitions_;
};

/// Whether a search may go round a circle of two states or more without a match on its way. It may stay in one state
/// for any time: the engine remembers that.
bool circles(const PatternStates& p) {
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> mark(p.n_states, kNew);
    for (std::uint32_t start = kStartState; start < p.n_states; ++start) {
        if (mark[start] != kNew) continue;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> path = {{start, 0}};
        mark[start] = kOpen;
        while (!path.empty()) {
            auto& [state, column] = path.back();
            if (column == p.n_classes) {
                mark[state] = kDone;
                path.pop_back();
                continue;
            }
            const std::uint16_t cell = p.transitions[state * (p.n_classes + 1) + column++];
            const std::uint32_t next = cell & kStateMask;
            if ((cell & kMatchBefore) || next == 0 || next == state || mark[next] == kDone) continue;
            if (mark[next] == kOpen) return true;
            mark[next] = kOpen;
            path.emplace_back(next, 0);
        }
    }
    return false;
}

/// Classes of bytes, from the classes of the characters that spell them.
std::vector<std::uint32_t> byte_runs(const CharacterClasses& classes) {
    std::vector<std::uint32_t> runs;
    for (std::uint32_t byte = 0; byte < 256; ++byte)
        runs.push_back(byte << 8 | classes.of(first_character(byte_spelling(byte)).code));
    return runs;
}

/// Characters of the shortest match, found by a walk outward from the start. Each character has a byte at least.
std::uint32_t least_match(const PatternStates& p) {
    std::vector<bool> seen(p.n_states);
    std::vector<std::uint32_t> level = {kStartState};
    for (std::uint32_t n = 0; !level.empty(); ++n) {
        std::vector<std::uint32_t> next;
        for (const std::uint32_t state : level)
            for (std::uint32_t column = 0; column <= p.n_classes; ++column) {
                const std::uint16_t cell = p.transitions[state * (p.n_classes + 1) + column];
                if (cell & kMatchBefore) return std::max<std::uint32_t>(n, 1);
                if (const std::uint32_t to = cell & kStateMask; to && !seen[to]) {
                    seen[to] = true;
                    next.push_back(to);
                }
            }
        level = std::move(next);
    }
    return 1;
}

}  // namespace

bool PatternStates::same_class(std::uint32_t a, std::uint32_t b) const {
    const auto of = [&](std::uint32_t code) { return code < 128 ? ascii[code] : value_at(runs, code); };
    return of(a) == of(b);
}

PatternStates compile_pattern(const PatternNodes& nodes, bool of_bytes, const RefusePattern& refuse) {
    const CharacterClasses classes = make_classes(nodes.sets, refuse);
    Compiler compiler(nodes, classes, refuse);
    PatternStates result;
    result.transitions = compiler.run();
    result.n_states = static_cast<std::uint32_t>(compiler.n_states());
    result.n_classes = static_cast<std::uint32_t>(classes.members.size());
    result.transitions.resize(std::size_t{result.n_states} * (result.n_classes + 1));
    result.runs = of_bytes ? byte_runs(classes) : classes.runs;
    for (std::uint32_t code = 0; code < 128; ++code) result.ascii.push_back(value_at(result.runs, code));
    if (of_bytes) result.flags |= kPatternOfBytes;
    result.least_bytes = least_match(result);
    if (circles(result)) refuse("a pattern that finds its matches without looking far ahead");
    return result;
}

PatternNodes set_pattern(const CodeSet& set, bool runs) {
    using enum PatternNode::Kind;
    PatternNodes result;
    result.sets = {set};
    result.nodes = {{take, 0, false, 1, 0}, {match, 0, false, 0, 0}};
    if (runs) result.nodes = {{take, 0, false, 1, 0}, {fork, 0, false, 0, 2}, {match, 0, false, 0, 0}};
    return result;
}

}  // namespace fovea
