// A grammar as deterministic automata of bytes, one for each rule. Rules enter one another.
#pragma once
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "host/grammar/expression.h"

namespace fovea::grammar {

using ByteSet = std::bitset<256>;

/// A rule that is entered min >= 1 to max times (0: without end), and the state in which its caller goes on.
struct Call {
    std::uint32_t callee = 0;  ///< unit; after trim its first state
    std::uint32_t min = 1, max = 1;
    std::uint32_t target = 0;  ///< state
    Item item = Item::none;
    std::uint32_t list = 0;  ///< of Grammar::others
};

struct ByteRange {
    std::uint8_t low = 0, high = 0;
    std::uint32_t target = 0;
};

struct State {
    bool accepts = false;
    std::uint32_t unit = 0;
    std::uint32_t height = 0;  ///< least nesting depth of calls on the way to its end
    std::vector<ByteRange> ranges = {};
    std::vector<Call> calls = {};

    [[nodiscard]] std::uint32_t next(std::uint8_t byte) const;  ///< kNoTarget: nowhere
};
inline constexpr std::uint32_t kNoTarget = 0xffffffffu;

/// A rule, or a repeated part of one. No state leads back to its first state, which accepts only in the root: a rule
/// that may be empty is skipped where it is entered.
struct Unit {
    std::string name;
    NodeId body = 0;
    std::uint32_t start = 0;
    bool is_item = false;  ///< all bytes of its texts count, for they tell items apart; known after trim
};

struct Automaton {
    std::vector<State> states;
    std::vector<Unit> units;  ///< the first is the root
    std::uint32_t start = 0;
};

/// Throws GrammarError: a grammar too large, or without a text. `tells_texts`: calls may tell their texts from Grammar::others.
[[nodiscard]] Automaton build_automaton(const Grammar& grammar, std::size_t max_states, bool tells_texts);

/// Leaves out bytes that are not `available`, then states that cannot be reached or lead to no end. Calls name states
/// from here on. Throws GrammarError: no text at all, left recursion.
void trim(Automaton& automaton, const ByteSet& available);

/// Facts about a rule, found before automata are made of it.
class Rules {
public:
    explicit Rules(const Grammar& grammar);
    [[nodiscard]] bool nullable(NodeId node) const { return nullable_[node]; }
    [[nodiscard]] bool inlined(RuleId rule) const { return inlined_[rule]; }
    /// How many states an automaton of `node` has, roughly; saturates.
    [[nodiscard]] std::uint32_t size(NodeId node) const { return size_[node]; }

private:
    void find_nullable();
    [[nodiscard]] bool may_be_empty(const Node& node) const;
    void find_sizes();
    [[nodiscard]] std::uint32_t size_of(const Node& node) const;

    const Grammar& grammar_;
    std::vector<bool> nullable_, nullable_rules_, inlined_;
    std::vector<std::uint32_t> size_;
    std::vector<std::vector<RuleId>> uses_;  // rules that each rule uses; twice those it uses more than once
};

/// Repeated parts up to this size are written out; larger ones become units that are counted.
inline constexpr std::uint32_t kMostUnrolled = 24;

/// Characters as sequences of up to four ranges of bytes (Thompson's construction for UTF-8; Pike 1992).
struct ByteSequence {
    std::uint32_t n = 0;
    std::uint8_t low[4] = {}, high[4] = {};
};
[[nodiscard]] std::vector<ByteSequence> utf8_sequences(const CodeSet& set);

}  // namespace fovea::grammar
