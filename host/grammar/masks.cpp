#include "host/grammar/masks.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "fovea/host/tokens.h"
#include "host/grammar/merged_tokens.h"

namespace fovea::grammar {
namespace {

// Below this many nodes a walk is as quick as a mask.
constexpr std::uint32_t kFewNodes = 1024;
// Nodes walked for all masks together, or work of that time, some 10 ms; and masks at most. What is no walk, in nodes:
constexpr std::uint32_t kLookUp = 8, kRow = 64;
constexpr std::uint64_t kMostWork = 2'500'000;
constexpr std::size_t kMostMasks = 64;
// States that share the tree of merged tokens, at most: more would leave little of it, after long.
constexpr std::size_t kMostFar = 1000;
// Nodes that are still walked beside a mask, at most.
constexpr std::uint64_t kMostBeside = 32768;

/// Which bytes may come first in a state, and after a rule.
class Neighbours {
public:
    explicit Neighbours(const Automaton& a) : automaton_(a), first_(a.states.size()), known_(a.states.size()) {
        follow_.resize(a.units.size());
        for (bool changed = true; changed;) {
            changed = false;
            for (const State& s : a.states)
                for (const Call& call : s.calls) {
                    ByteSet& follow = follow_[a.states[call.callee].unit];
                    const ByteSet before = follow;
                    follow |= after(s, call);
                    changed = changed || follow != before;
                }
        }
    }

    /// Bytes that may come first, without those behind its rule.
    const ByteSet& first(std::uint32_t state) {
        if (known_[state]) return first_[state];
        known_[state] = true;  // there is no recursion at the left
        ByteSet set;
        for (const ByteRange& range : automaton_.states[state].ranges)
            for (std::uint32_t b = range.low; b <= range.high; ++b) set[b] = true;
        for (const Call& call : automaton_.states[state].calls) set |= first(call.callee);
        return first_[state] = set;
    }
    /// Bytes that leave the state's rule, or enter another.
    ByteSet exits(std::uint32_t state) {
        const State& s = automaton_.states[state];
        ByteSet set;
        if (s.accepts) set = follow_[s.unit];
        for (const Call& call : s.calls) set |= first(call.callee);
        return set;
    }
    /// Bytes after a call of `s` has ended for good.
    ByteSet leaves(const State& s, const Call& call) {
        ByteSet set = first(call.target);
        if (automaton_.states[call.target].accepts) set |= follow_[s.unit];
        return set;
    }

private:
    ByteSet after(const State& s, const Call& call) {
        ByteSet set = leaves(s, call);
        if (call.max != 1) set |= first(call.callee);
        return set;
    }

    const Automaton& automaton_;
    std::vector<ByteSet> first_, follow_;
    std::vector<bool> known_;
};

/// Where bytes lead from a state, for walks over whole vocabularies.
struct Row {
    static constexpr std::uint32_t kLeaves = 0x80000000u;  // the byte may also leave the state's rule, or enter another
    static constexpr std::uint32_t kNowhere = 0x7fffffffu;

    std::uint32_t targets[256];
    std::uint32_t height;
};
class Rows {
public:
    Rows(const Automaton& a, Neighbours& neighbours) : automaton_(a), neighbours_(neighbours), rows_(a.states.size()) {}

    const Row& of(std::uint32_t state) {
        std::unique_ptr<Row>& row = rows_[state];
        if (row) return *row;
        row = std::make_unique<Row>();
        ++n_made;
        std::fill(std::begin(row->targets), std::end(row->targets), Row::kNowhere);
        row->height = automaton_.states[state].height;
        for (const ByteRange& range : automaton_.states[state].ranges)
            std::fill(row->targets + range.low, row->targets + range.high + 1, range.target);
        const ByteSet exits = neighbours_.exits(state);
        for (std::size_t byte = 0; byte < 256; ++byte)
            if (exits[byte]) row->targets[byte] |= Row::kLeaves;
        return *row;
    }
    /// Without what leaves.
    std::uint32_t next(std::uint32_t state, std::uint8_t byte) { return of(state).targets[byte] & ~Row::kLeaves; }

    std::uint64_t n_made = 0;

private:
    const Automaton& automaton_;
    Neighbours& neighbours_;
    std::vector<std::unique_ptr<Row>> rows_;
};

class Masker {
public:
    Masker(const Automaton& a, const IndexView& index)
        : a_(a), index_(index), neighbours_(a), rows_(a, neighbours_), is_few_(a.states.size()) {
        for (std::uint32_t i = 0; i < index.nodes.size(); i = index.nodes[i].end()) roots_.push_back(i);
    }

    Masks make(bool merges) {
        masks_.of_state.assign(a_.states.size(), kNoPlace);
        masks_.of_call.resize(a_.states.size());
        make_loops();
        // States of items go first, which walks without masks take longest from, then those that a text comes back to.
        for (const int turn : {0, 1, 2})
            for (std::uint32_t s = 0; s < a_.states.size(); ++s)
                if (const int own = a_.units[a_.states[s].unit].is_item ? 0
                                    : returns(s)                        ? 1
                                                                        : 2;
                    own == turn && !is_loop_[s])
                    make_state(s);
        if (merges) merge();
        return std::move(masks_);
    }

private:
    [[nodiscard]] bool is_too_much() const { return work_ + rows_.n_made * kRow > kMostWork; }

    void make_state(std::uint32_t s) {
        if (is_too_much() || masks_.wide.size() >= kMostMasks) return;
        Wide wide;
        if (!walk_state(s, wide)) return;
        masks_.of_state[s] = static_cast<std::uint32_t>(masks_.wide.size());
        masks_.wide.push_back(std::move(wide));
    }

    /// Whether a walk goes far from here, whatever is known.
    [[nodiscard]] bool is_far(std::uint32_t state, std::uint32_t wide) const {
        if (n_below(state) < kMostBeside || a_.units[a_.states[state].unit].is_item) return false;
        return wide == kNoPlace ? !is_few_[state] : n_beside(masks_.wide[wide]) > kMostBeside;
    }
    /// Nodes below those where a token may leave the rule.
    [[nodiscard]] std::uint64_t n_beside(const Wide& wide) const {
        std::uint64_t n = 0;
        for (const auto& [node, second] : wide.entries) n += index_.nodes[node].end() - node;
        return n;
    }

    /// States that walks go far from share the tree of merged tokens. A mask of a state leaves little of it.
    void merge() {
        std::vector<std::uint32_t> far;
        for (std::uint32_t s = 0; s < a_.states.size(); ++s)
            if (is_far(s, is_loop_[s] ? loops_.at(s) : masks_.of_state[s])) far.push_back(s);
        if (far.empty() || far.size() > kMostFar) return;
        auto merged = merge_tokens(a_, far, index_);
        if (!merged) return;
        masks_.merged = std::move(*merged);
        for (const std::uint32_t s : far) {
            if (const auto spare = spare_.find(s); spare != spare_.end()) {
                masks_.of_state[s] = static_cast<std::uint32_t>(masks_.wide.size());
                masks_.wide.emplace_back().mask = std::move(spare->second);
            }
            if (masks_.of_state[s] == kNoPlace) {
                masks_.of_state[s] = kMergedTokens;
                continue;
            }
            Wide& wide = masks_.wide[masks_.of_state[s]];
            wide.entries.clear();
            wide.skips = skips_of(masks_.merged, wide.mask);
        }
    }

    [[nodiscard]] bool returns(std::uint32_t state) const {
        const std::vector<ByteRange>& ranges = a_.states[state].ranges;
        return std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& r) { return r.target == state; });
    }

    /// Nodes of the tokens whose first bytes lead on.
    [[nodiscard]] std::uint64_t n_below(std::uint32_t state) const {
        std::uint64_t n = 0;
        for (const ByteRange& range : a_.states[state].ranges)
            n += index_.roots[range.high + 1u] - index_.roots[range.low];
        return n;
    }

    /// The tokens that stay in the rule of `start`. False if a walk at run time is as good.
    bool walk_state(std::uint32_t start, Wide& wide) {
        if (n_below(start) < kFewNodes) return false;
        std::vector<std::uint32_t> leads;  // by root
        std::uint64_t n_alike = 0;
        for (std::size_t r = 0; r < roots_.size(); ++r) {
            const IndexNode root = index_.nodes[roots_[r]];
            leads.push_back(rows_.next(start, root.byte()));
            if (r < leads_.size() && leads[r] == leads_[r]) n_alike += root.end() - roots_[r];
        }
        const bool is_near =
            n_alike > index_.nodes.size() / 2;  // to the state before, whose mask is changed where they differ
        if (!is_near) mask_.assign((index_.vocab_size + 31) / 32, 0);
        std::uint32_t n_seen = 0, height = 0;
        for (std::size_t r = 0; r < roots_.size(); ++r) {
            ++n_seen;
            if (is_near && leads[r] != leads_[r]) flip(roots_[r], leads_[r]);
            if (leads[r] == Row::kNowhere) continue;
            const Below& below = walk_below(roots_[r], leads[r]);
            height = std::max(height, below.height);
            n_seen += below.n_seen;
            work_ += kLookUp + below.entries.size();
            if (!is_near || leads[r] != leads_[r]) flip(roots_[r], leads[r]);
            wide.entries.insert(wide.entries.end(), below.entries.begin(), below.entries.end());
        }
        leads_ = std::move(leads);
        work_ += 2 * roots_.size();
        is_few_[start] = n_seen + n_beside(wide) < kMostBeside;
        // A way that needs more room on the stack than the start does is not known to fit.
        if (n_seen < kFewNodes || height > a_.states[start].height) return false;
        if (wide.entries.size() > n_seen / 2) {
            if (spare_.size() < kMostMasks) spare_[start] = mask_;
            return false;
        }
        wide.mask = mask_;
        sort_entries(wide);
        return true;
    }
    /// What a walk meets that starts behind the first byte of tokens: the same for all states that the byte leads from.
    struct Below {
        std::vector<std::uint32_t> tokens;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;
        std::uint32_t n_seen = 0, height = 0;
    };
    const Below& walk_below(std::uint32_t root, std::uint32_t state) {
        const auto [known, is_new] = below_state_.try_emplace(std::uint64_t{root} << 32 | state);
        Below& below = known->second;
        if (!is_new) return below;
        std::uint32_t states[kMostTokenBytes + 1] = {kNoTarget, state};
        const Row* rows[kMostTokenBytes + 1] = {nullptr, &rows_.of(state)};
        std::uint32_t n_seen = 0, height = rows[1]->height;
        if (index_.nodes[root].token() != kNoNodeToken) below.tokens.push_back(index_.nodes[root].token());
        for (std::uint32_t i = root + 1, end = index_.nodes[root].end(); i < end;) {
            const IndexNode node = index_.nodes[i];
            const std::uint32_t depth = node.depth();
            std::uint32_t to = rows[depth - 1]->targets[node.byte()];
            ++n_seen;
            if (to & Row::kLeaves) below.entries.emplace_back(i, states[depth - 1]);
            to &= ~Row::kLeaves;
            if (to == Row::kNowhere) {
                i = node.end();
                continue;
            }
            if (node.token() != kNoNodeToken) below.tokens.push_back(node.token());
            states[depth] = to;
            rows[depth] = to == states[depth - 1] ? rows[depth - 1] : &rows_.of(to);
            height = std::max(height, rows[depth]->height);
            ++i;
        }
        below.n_seen = n_seen;
        below.height = height;
        work_ += n_seen;
        return below;
    }

    /// Allows a root's tokens from a state, or forbids them, which are those of no other root.
    void flip(std::uint32_t root, std::uint32_t state) {
        if (state == Row::kNowhere) return;
        const std::vector<std::uint32_t>& tokens = walk_below(root, state).tokens;
        for (const std::uint32_t token : tokens) mask_[token / 32] ^= 1u << token % 32;
        work_ += tokens.size() / 8;
    }

    static void sort_entries(Wide& wide) {
        std::stable_sort(wide.entries.begin(), wide.entries.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    }

    // ---- repetitions -----------------------------------------------------------------------------------------------

    /// Whether each unit's repetition ends where it is seen to: what can follow cannot go on, and nothing is entered within.
    [[nodiscard]] std::vector<bool> clear_units() const {
        std::vector<bool> clear(a_.units.size(), true);
        for (const State& s : a_.states)
            if (!s.calls.empty() || (s.accepts && !s.ranges.empty())) clear[s.unit] = false;
        return clear;
    }

    /// Counts the repetitions that each token begins, of the unit that starts at `start`; `leave` are bytes after the last.
    void walk_loop(std::uint32_t start, const ByteSet& leave, Wide& wide) {
        struct Spot {
            std::uint32_t state, n;
        } spots[kMostTokenBytes + 1] = {{start, 0}};
        wide.mask.assign((index_.vocab_size + 31) / 32, 0);
        wide.counts.assign(wide.mask.size() * 32, 0);
        for (std::uint32_t i = 0; i < index_.nodes.size();) {
            const IndexNode node = index_.nodes[i];
            const std::uint32_t depth = node.depth();
            const Spot from = spots[depth - 1];
            const bool between = depth == 1 || a_.states[from.state].accepts;
            if (depth > 1 && between && leave[node.byte()]) wide.entries.emplace_back(i, from.n);
            const std::uint32_t to = rows_.next(between ? start : from.state, node.byte());
            ++work_;
            if (to == Row::kNowhere) {
                i = node.end();
                continue;
            }
            spots[depth] = {to, from.n + between};
            if (node.token() != kNoNodeToken) {
                wide.mask[node.token() / 32] |= 1u << node.token() % 32;
                wide.counts[node.token()] = static_cast<std::uint8_t>(spots[depth].n);
            }
            ++i;
        }
        sort_entries(wide);
    }

    void make_loops() {
        std::unordered_map<std::uint32_t, ByteSet> leave;  // by first state
        for (std::uint32_t s = 0; s < a_.states.size(); ++s) {
            masks_.of_call[s].assign(a_.states[s].calls.size(), kNoPlace);
            for (const Call& call : a_.states[s].calls)
                if (call.max != 1) leave[call.callee] |= neighbours_.leaves(a_.states[s], call);
        }
        is_loop_.assign(a_.states.size(), false);
        is_clear_ = clear_units();
        for (std::uint32_t s = 0; s < a_.states.size(); ++s)
            for (std::size_t c = 0; c < a_.states[s].calls.size(); ++c) {
                const Call& call = a_.states[s].calls[c];
                if (call.max == 1) continue;
                if (!loops_.contains(call.callee)) loops_[call.callee] = make_loop(call.callee, leave[call.callee]);
                masks_.of_call[s][c] = loops_[call.callee];
            }
    }
    std::uint32_t make_loop(std::uint32_t callee, const ByteSet& leave) {
        if (is_too_much() || masks_.wide.size() >= kMostMasks || !is_clear_[a_.states[callee].unit] ||
            (neighbours_.first(callee) & leave).any())
            return kNoPlace;
        walk_loop(callee, leave, masks_.wide.emplace_back());
        is_loop_[callee] = true;
        return static_cast<std::uint32_t>(masks_.wide.size() - 1);
    }

    const Automaton& a_;
    const IndexView& index_;
    Neighbours neighbours_;
    Rows rows_;
    std::vector<bool> is_loop_, is_few_, is_clear_;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> spare_;  // by state: masks with too many entries
    std::unordered_map<std::uint32_t, std::uint32_t> loops_;               // by first state: masks, or kNoPlace
    Masks masks_;
    std::unordered_map<std::uint64_t, Below> below_state_;  // by node and state
    std::vector<std::uint32_t> roots_;                      // nodes of first bytes
    std::vector<std::uint32_t> leads_, mask_;  // of the state that was walked from last: by root, and its tokens
    std::uint64_t work_ = 0;
};

// ---- forced tokens -------------------------------------------------------------------------------------------------

constexpr std::size_t kMostForcedBytes = 32;

[[nodiscard]] bool is_forced(const State& s) {
    return !s.accepts && s.calls.empty() && s.ranges.size() == 1 && s.ranges[0].low == s.ranges[0].high;
}

/// The bytes that must follow a state, and whether there were more.
[[nodiscard]] std::string forced_bytes(const Automaton& a, std::uint32_t state) {
    std::string bytes;
    while (bytes.size() < kMostForcedBytes && is_forced(a.states[state])) {
        bytes += static_cast<char>(a.states[state].ranges[0].low);
        state = a.states[state].ranges[0].target;
    }
    return bytes;
}

/// The nodes along `bytes`, as long as `visit(node, number)` is true. Neighbours of the same bytes are all visited.
void visit_along(const IndexView& index, std::string_view bytes, const auto& visit) {
    const auto first = static_cast<std::uint8_t>(bytes[0]);
    for (std::uint32_t i = index.roots[first], end = index.roots[first + 1u]; i < end;) {
        const IndexNode node = index.nodes[i];
        const auto wanted = static_cast<std::uint8_t>(bytes[node.depth() - 1]);
        if (node.byte() > wanted) return;
        const bool is_along = node.byte() == wanted, has_children = node.end() > i + 1;
        if (is_along && !visit(node, i)) return;
        if (!is_along || node.depth() == bytes.size()) {
            i = node.end();
            continue;
        }
        if (has_children) end = node.end();
        ++i;
    }
}

/// The longest token that `bytes` start with and that is shorter than they are.
[[nodiscard]] std::uint32_t longest_token(const IndexView& index, std::string_view bytes) {
    std::uint32_t found = kNoPlace;
    visit_along(index, bytes, [&](const IndexNode& node, std::uint32_t) {
        if (node.depth() == bytes.size()) return false;
        if (node.token() != kNoNodeToken) found = node.token();
        return true;
    });
    return found;
}

/// Whether some token is longer than `bytes` and starts with them. The form stops forcing behind them, so a model may
/// want that token: it decides where the first token ends.
[[nodiscard]] bool goes_on(const IndexView& index, std::string_view bytes) {
    bool found = false;
    visit_along(index, bytes, [&](const IndexNode& node, std::uint32_t i) {
        found = node.depth() == bytes.size() && node.end() > i + 1;
        return !found;
    });
    return found;
}

}  // namespace

Masks make_masks(const Automaton& automaton, const IndexView& index, bool merges) {
    return Masker(automaton, index).make(merges);
}

std::vector<std::uint32_t> force_tokens(const Automaton& a, const Tokenizer& tokenizer, const IndexView& index) {
    std::vector<std::uint32_t> forced(a.states.size(), kNoPlace);
    std::unordered_map<std::string, std::uint32_t> known;
    for (std::uint32_t s = 0; s < a.states.size(); ++s) {
        if (!is_forced(a.states[s])) continue;
        const std::string bytes = forced_bytes(a, s);
        if (bytes.size() < 2) continue;
        const auto [place, made] = known.try_emplace(bytes, kNoPlace);
        if (made) {
            if (goes_on(index, bytes)) continue;
            const std::vector<Token> ids = host::tokenize(tokenizer, bytes, {.add_special = false});
            const std::string_view first = ids.size() > 1 ? token_bytes(tokenizer, ids[0]) : std::string_view();
            const bool fits = !first.empty() && first.size() < bytes.size() && bytes.starts_with(first) &&
                              !tokenizer.is_special(ids[0]) && first.size() <= kMostTokenBytes;
            if (fits)
                place->second = ids[0];
            else if (ids.size() > 1)  // a tokenizer that adds to a text's start
                place->second = longest_token(index, bytes);
        }
        forced[s] = place->second;
    }
    return forced;
}

}  // namespace fovea::grammar
