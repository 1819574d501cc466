// Regular expressions as parts of a grammar.
#pragma once
#include <functional>
#include <optional>
#include <string_view>

#include "host/grammar/expression.h"

namespace fovea::grammar {

struct Repetition {
    NodeId child = 0;
    std::uint32_t min = 0, max = 0;
};

struct RegexPart {
    NodeId node = 0;
    std::uint64_t min_length = 0, max_length = 0;  ///< characters; kNoLimit: without end
    /// If all of it is one repeated expression, which is of one character: the repetitions, so that they can be narrowed.
    std::optional<Repetition> repetition = {};
};

/// How a character of a set is written.
using WriteSet = std::function<NodeId(const CodeSet&)>;

/// Adds `pattern` to a grammar. `search`: it need match only a part, unless it is anchored. \d and \D are ECMA's.
/// Dialects differ on other classes beyond ASCII: a class writes the characters that it has in all dialects. Throws
/// GrammarError: syntax, and what no automaton does (back references, assertions but ^ and $ at the ends).
[[nodiscard]] RegexPart add_regex(Grammar& grammar, std::string_view pattern, const std::string& name,
                                  const WriteSet& write, bool search);

}  // namespace fovea::grammar
