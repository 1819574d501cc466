// Sets of texts as automata over characters: what patterns, lengths and lists of values say of a string together.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/grammar/expression.h"

namespace fovea::grammar {

/// How a character of a set is written.
using WriteSet = std::function<NodeId(const CodeSet&)>;

/// A deterministic automaton; a character that no edge of a state has leads to no text. The work of each operation is bounded:
/// all throw GrammarError if the automaton would be too large.
class Language {
public:
    /// Every text.
    [[nodiscard]] static Language all();
    [[nodiscard]] static Language of_texts(std::span<const std::string> texts);
    /// Texts of min to max characters.
    [[nodiscard]] static Language of_lengths(std::uint32_t min, std::uint32_t max);
    /// What an expression without rules or lists says.
    [[nodiscard]] static Language of(const Grammar& grammar, NodeId node);

    /// Its texts of min to max characters; nothing if it would cost more than `most_cost`.
    [[nodiscard]] std::optional<Language> within(std::uint32_t min, std::uint32_t max, std::size_t most_cost) const;
    [[nodiscard]] Language operator&(const Language& other) const;
    [[nodiscard]] Language operator|(const Language& other) const;
    [[nodiscard]] Language operator-(const Language& other) const;

    /// With as few states as there are (Moore 1956).
    [[nodiscard]] Language minimal() const;
    [[nodiscard]] bool empty() const { return states_.empty(); }
    /// Whether every text's beginning is that of texts without number, so that another one is always left.
    [[nodiscard]] bool is_endless() const;
    [[nodiscard]] bool has(std::string_view text) const;
    /// What it costs to write it, in states of bytes, roughly.
    [[nodiscard]] std::size_t cost() const;
    /// The same texts as an expression.
    [[nodiscard]] NodeId write(Grammar& grammar, const WriteSet& write_set) const;

private:
    /// Characters that lead to a state.
    struct Range {
        std::uint32_t low = 0, high = 0, target = 0;
    };
    struct State {
        bool accepts = false;
        std::vector<Range> ranges = {};  // ascending, apart; neighbours of one target are one

        void add(Range range);
        [[nodiscard]] std::size_t cost() const;
    };
    /// From each state, the least characters to a text's end; kNoLimit: there is none.
    [[nodiscard]] std::vector<std::uint32_t> ways_out() const;
    using Accepts = bool (*)(bool, bool);
    [[nodiscard]] static Language combine(const Language& a, const Language& b, Accepts accepts);
    void drop_dead_ends();

    std::vector<State> states_;  // the first is the start; none: no text at all
};

}  // namespace fovea::grammar
