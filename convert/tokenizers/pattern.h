// A regular expression, as tokenizer.json spells it, becomes the states that a section holds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/tokenizers/code_set.h"

namespace fovea {

/// Where `value` is in a list, at whose end it is put if it is new.
template<class T>
std::uint32_t index_in(std::vector<T>& list, T value) {
    const auto found = std::find(list.begin(), list.end(), value);
    const auto index = static_cast<std::uint32_t>(found - list.begin());
    if (found == list.end()) list.push_back(std::move(value));
    return index;
}

/// One node of a pattern: it takes one character, forks, looks at the next character, or is the end. A fork prefers its
/// first way, as a backtracking matcher does.
struct PatternNode {
    enum class Kind : std::uint8_t { take, fork, look, match };
    Kind kind = Kind::match;
    std::uint32_t set = 0;  ///< take, look: index of a set
    bool at_end = false;    ///< look: holds at the text's end too
    std::uint32_t next = 0, other = 0;
};
struct PatternNodes {
    std::vector<PatternNode> nodes;
    std::vector<CodeSet> sets;
    std::uint32_t start = 0;
};

/// Refuses a pattern, by the words for what was expected: "a lookahead of one character"; does not return.
using RefusePattern = std::function<void(const std::string& wanted)>;

/// Reads `pattern`, in Oniguruma's words for it, as far as the patterns of tokenizers go: characters and classes with
/// ranges, nested, excluded, and intersected ("&&"); \p of general categories and Han, \s \S \d \D; groups, "(?i:" groups;
/// ?, *, + and {m,n}, lazy too; "(?=" and "(?!" of one character, "$". Anything else is refused.
[[nodiscard]] PatternNodes parse_pattern(std::string_view pattern, const RefusePattern& refuse);

/// A pattern as it lies in a section: TokenizerPattern and its rows.
struct PatternStates {
    std::uint32_t n_states = 0, n_classes = 0, flags = 0;
    std::vector<std::uint8_t> ascii;         ///< [128]
    std::vector<std::uint32_t> runs;         ///< first code point << 8 | class
    std::vector<std::uint16_t> transitions;  ///< [n_states][n_classes + 1]
    std::uint32_t least_bytes = 1;           ///< of a match
    /// Whether it takes these two characters for the same in every place.
    [[nodiscard]] bool same_class(std::uint32_t a, std::uint32_t b) const;
    bool operator==(const PatternStates&) const = default;
};

/// The states; one of them says all there is to know about the text read so far. `of_bytes`: the pattern is about the
/// characters that spell bytes in byte-level vocabularies. Refused: patterns that match nothing at all, that have
/// thousands of states, or that may have to look through any length of text again and again.
/// Source: Rabin and Scott 1959; the order of alternatives is kept as in Cox 2009.
[[nodiscard]] PatternStates compile_pattern(const PatternNodes& nodes, bool of_bytes, const RefusePattern& refuse);

/// The pattern that matches one character of `set`, or runs of them.
[[nodiscard]] PatternNodes set_pattern(const CodeSet& set, bool runs);

}  // namespace fovea
