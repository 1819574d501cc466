// Regular expressions as parts of a grammar.
#pragma once
#include <string_view>
#include <vector>

#include "host/grammar/language.h"

namespace fovea::grammar {

struct RegexPart {
    NodeId node = 0;
    std::uint64_t min_length = 0, max_length = 0;  ///< characters; kNoLimit: without end
    /// Repetitions of one character that stand once in the pattern, so that they can be narrowed where they are.
    std::vector<NodeId> repeats = {};
    /// The most characters if each of those is read as few times as it may be.
    std::uint64_t fixed_length = 0;
    bool one_way = true;  ///< every text passes each of those repetitions
};

/// Dialects differ on \w, \s and . beyond ASCII, and on a line end before $: what all of them match, or what any of them does.
enum class Dialects : char { all, any };

/// Adds what all dialects match of `pattern` to a grammar. `search`: it need match only a part, unless it is anchored. Throws
/// GrammarError: syntax, and what no automaton does (back references, assertions but ^ and $ at the ends and (?= and (?!
/// outside of groups).
[[nodiscard]] RegexPart add_regex(Grammar& grammar, std::string_view pattern, const std::string& name,
                                  const WriteSet& write, bool search);

/// The texts in which a pattern is found. Throws as add_regex does.
[[nodiscard]] Language language_of_regex(std::string_view pattern, Dialects dialects);

}  // namespace fovea::grammar
