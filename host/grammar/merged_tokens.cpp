// Tokens that the states of a form do not tell apart, as one tree: over a vocabulary of 150,000 tokens, a class of letters with
// repetitions leaves a few hundred nodes of a million.
#include "host/grammar/merged_tokens.h"

#include <algorithm>
#include <bitset>
#include <span>
#include <utility>

#include "host/base/list_numbers.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostMerged = 100'000;       // nodes
constexpr std::uint64_t kMostMerging = 2'000'000;  // looks at nodes and at states' bytes, some 10 ms
constexpr std::uint32_t kNoSet = 0xffffffffu;

/// States that a text may be in after the same bytes, whatever called the rule that it is in: more than there are.
struct StateSet {
    std::vector<std::uint32_t> states;  // those that read bytes
    std::uint8_t class_of[256] = {};    // bytes of one class lead each state to the same one; of class 0, none anywhere
    std::vector<std::uint8_t> bytes;    // by class: one of them
    std::vector<std::uint32_t> next;    // by class: a set
};

class TokenMerger {
public:
    TokenMerger(const Automaton& a, const IndexView& index) : a_(a), index_(index), returns_(a.units.size()) {
        for (const State& s : a.states)
            for (const Call& call : s.calls) {
                std::vector<std::uint32_t>& returns = returns_[a.states[call.callee].unit];
                returns.push_back(call.target);
                if (call.max != 1) returns.push_back(call.callee);
            }
        for (std::vector<std::uint32_t>& returns : returns_) {
            std::sort(returns.begin(), returns.end());
            returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
        }
        stamps_.resize(a.states.size());
    }

    std::optional<MergedTokens> merge(const std::vector<std::uint32_t>& starts) {
        for (std::uint32_t i = 0; i < index_.nodes.size(); i = index_.nodes[i].end()) line_.push_back(i);
        add_children(0, set_of(starts), 1);
        if (is_too_much()) return std::nullopt;
        return std::move(out_);
    }

private:
    [[nodiscard]] bool is_too_much() const { return work_ > kMostMerging || out_.nodes.size() > kMostMerged; }

    /// The states that can be reached from `seeds` without a byte, and those.
    std::uint32_t set_of(std::vector<std::uint32_t> seeds) {
        ++stamp_;
        std::vector<std::uint32_t> states;
        while (!seeds.empty()) {
            ++work_;
            const std::uint32_t s = seeds.back();
            seeds.pop_back();
            if (std::exchange(stamps_[s], stamp_) == stamp_) continue;
            const State& state = a_.states[s];
            if (!state.ranges.empty()) states.push_back(s);
            for (const Call& call : state.calls) seeds.push_back(call.callee);
            if (state.accepts) seeds.insert(seeds.end(), returns_[state.unit].begin(), returns_[state.unit].end());
        }
        std::sort(states.begin(), states.end());
        const auto [number, is_new] = known_.number_of(states);
        if (is_new) {
            sets_.emplace_back();
            sets_.back().states = std::move(states);
            find_classes(sets_.back());
        }
        return number;
    }

    /// Tells bytes apart by where they lead each of the states, one state after the other.
    void find_classes(StateSet& set) {
        struct Column {
            std::uint8_t byte = 0;  // the first of those that no state tells apart
            bool leads = false;
            std::uint32_t kind = 0;
        };
        std::bitset<257> starts(1);
        const bool is_item = std::any_of(set.states.begin(), set.states.end(),
                                         [&](std::uint32_t s) { return a_.units[a_.states[s].unit].is_item; });
        if (is_item) starts.set();
        for (const std::uint32_t s : set.states)
            for (const ByteRange& range : a_.states[s].ranges) starts[range.low] = starts[range.high + 1u] = true;
        std::vector<Column> columns;
        for (std::uint32_t byte = 0; byte < 256; ++byte)
            if (starts[byte]) columns.push_back({static_cast<std::uint8_t>(byte)});
        std::vector<std::uint32_t> first(1),
            seen(1, kNoSet);  // by kind: where its first column leads a state, and which
        struct Split {
            std::uint32_t kind, target, made;
        };
        std::vector<Split> splits;  // other columns of a kind: where they lead, and the kind that they become
        for (const std::uint32_t s : set.states) {
            splits.clear();
            auto range = a_.states[s].ranges.begin();
            const auto end = a_.states[s].ranges.end();
            for (Column& column : columns) {
                while (range != end && range->high < column.byte) ++range;
                const std::uint32_t target = range != end && range->low <= column.byte ? range->target : kNoTarget;
                column.leads = column.leads || target != kNoTarget;
                if (seen[column.kind] != s) {
                    seen[column.kind] = s;
                    first[column.kind] = target;
                } else if (first[column.kind] != target) {
                    auto split = std::find_if(splits.begin(), splits.end(), [&](const Split& one) {
                        return one.kind == column.kind && one.target == target;
                    });
                    if (split == splits.end()) {
                        split = splits.insert(split, {column.kind, target, static_cast<std::uint32_t>(first.size())});
                        first.push_back(0);
                        seen.push_back(kNoSet);
                    }
                    column.kind = split->made;
                }
            }
            work_ += columns.size();
        }
        std::vector<std::uint8_t> class_of(first.size());  // by kind
        set.bytes.push_back(0);
        std::size_t at = 0;
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            at += byte != 0 && starts[byte];
            const Column& column = columns[at];
            std::uint8_t& one = class_of[column.kind];
            if (column.leads && column.byte == byte && (one == 0 || is_item)) {
                one = static_cast<std::uint8_t>(set.bytes.size());
                set.bytes.push_back(column.byte);
            }
            set.class_of[byte] = column.leads ? one : 0;
        }
        set.next.assign(set.bytes.size(), kNoSet);
    }

    std::uint32_t next_set(std::uint32_t set, std::uint8_t byte_class) {
        if (sets_[set].next[byte_class] == kNoSet) {
            std::vector<std::uint32_t> targets;
            for (const std::uint32_t s : sets_[set].states)
                if (const std::uint32_t to = a_.states[s].next(sets_[set].bytes[byte_class]); to != kNoTarget)
                    targets.push_back(to);
            work_ += sets_[set].states.size();
            const std::uint32_t next = set_of(std::move(targets));
            sets_[set].next[byte_class] = next;
        }
        return sets_[set].next[byte_class];
    }

    /// The children of a node whose tokens lead to `set`: nodes of the index from `first` on in line_, all of them at `depth`, merged by
    /// class. They leave the line.
    void add_children(std::size_t first, std::uint32_t set, std::uint32_t depth) {
        const std::size_t n_classes = sets_[set].bytes.size(), last = line_.size();
        const auto class_at = [&](std::size_t i) { return sets_[set].class_of[index_.nodes[line_[i]].byte()]; };
        std::uint32_t ends[257] = {};  // by class: in the line, where the nodes stand again by class
        for (std::size_t i = first; i < last; ++i) ++ends[class_at(i)];
        auto end = static_cast<std::uint32_t>(last);
        for (std::size_t c = 0; c < n_classes; ++c) ends[c] = std::exchange(end, end + ends[c]);
        line_.resize(2 * last - first);
        for (std::size_t i = first; i < last; ++i) line_[ends[class_at(i)]++] = line_[i];
        work_ += last - first + n_classes;
        for (std::size_t c = 1; c < n_classes && !is_too_much(); ++c) {
            if (ends[c - 1] == ends[c]) continue;
            const auto number = static_cast<std::uint32_t>(out_.nodes.size());
            const std::uint32_t group = group_of(std::span(line_).subspan(ends[c - 1], ends[c] - ends[c - 1]));
            out_.nodes.push_back({sets_[set].bytes[c], group << 8 | depth});
            const std::size_t children = line_.size();
            for (std::size_t i = ends[c - 1]; i < ends[c]; ++i) {
                const std::uint32_t node = line_[i];
                for (std::uint32_t child = node + 1; child < index_.nodes[node].end();
                     child = index_.nodes[child].end())
                    line_.push_back(child);
            }
            if (line_.size() > children) add_children(children, next_set(set, static_cast<std::uint8_t>(c)), depth + 1);
            out_.nodes[number].end_byte |= static_cast<std::uint32_t>(out_.nodes.size()) << 8;
        }
        line_.resize(first);
    }

    /// The group of the tokens that end at these nodes.
    std::uint32_t group_of(std::span<const std::uint32_t> nodes) {
        std::vector<std::uint32_t>& ids = out_.ids;
        const std::size_t first = ids.size();
        for (const std::uint32_t node : nodes)
            if (index_.nodes[node].token() != kNoNodeToken) ids.push_back(index_.nodes[node].token());
        if (ids.size() == first) return kNoNodeToken;
        if (ids.size() - first < index_.vocab_size / 64)  // more become a mask
            std::sort(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
        out_.ends.push_back(ids.size());
        return static_cast<std::uint32_t>(out_.ends.size() - 1);
    }

    const Automaton& a_;
    const IndexView& index_;
    std::vector<std::vector<std::uint32_t>> returns_;  // by unit: where its callers may go on
    std::vector<StateSet> sets_;
    ListNumbers known_;
    std::vector<std::uint32_t> stamps_;
    std::vector<std::uint32_t> line_;  // nodes of the index, level behind level
    std::uint32_t stamp_ = 0;
    std::uint64_t work_ = 0;
    MergedTokens out_;
};

}  // namespace

std::vector<std::uint32_t> skips_of(const MergedTokens& merged, const std::vector<std::uint32_t>& mask) {
    std::vector<std::uint32_t> skips((merged.nodes.size() + 31) / 32);
    const auto has = [](const std::vector<std::uint32_t>& bits, std::uint32_t i) { return bits[i / 32] >> i % 32 & 1; };
    for (auto i = static_cast<std::uint32_t>(merged.nodes.size()); i-- > 0;) {
        const IndexNode node = merged.nodes[i];
        bool all =
            node.token() == kNoNodeToken || has(mask, merged.group(node.token()).front());  // a group's are alike
        for (std::uint32_t child = i + 1; all && child < node.end(); child = merged.nodes[child].end())
            all = has(skips, child);
        if (all) skips[i / 32] |= 1u << i % 32;
    }
    return skips;
}

std::optional<MergedTokens> merge_tokens(const Automaton& automaton, const std::vector<std::uint32_t>& starts,
                                         const IndexView& index) {
    return TokenMerger(automaton, index).merge(starts);
}

}  // namespace fovea::grammar
