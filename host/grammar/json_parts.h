// The parts that JSON texts are made of, as expressions.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/grammar/grammar.h"
#include "host/grammar/json_merge.h"
#include "host/grammar/json_numbers.h"
#include "host/grammar/regex.h"

namespace fovea::grammar {

/// The pattern of a format by its name; null for a name that JSON Schema does not have, which says nothing of a text.
[[nodiscard]] const char* pattern_of_format(const Json& name, const std::string& place);

class JsonParts {
public:
    JsonParts(Grammar& grammar, bool compact);

    [[nodiscard]] NodeId space() { return grammar_.rule(space_); }
    [[nodiscard]] NodeId any_value() { return grammar_.rule(value_); }
    [[nodiscard]] NodeId string(const SizeBounds& bounds = {});
    /// Texts in which `pattern` is found, as strings. If pattern and bounds together take too many states, not all that fit are
    /// written: shorter ones. Throws if that leaves none.
    [[nodiscard]] NodeId pattern(const std::string& pattern, const SizeBounds& bounds, const std::string& place);
    /// Texts of a language, as strings; with bounds as pattern does.
    [[nodiscard]] NodeId texts(const Language& language, const SizeBounds& bounds, const std::string& place);
    /// A text as a string that tells an item from those before it; one rule for all of a name. Throws if others could leave it none.
    [[nodiscard]] NodeId item(const Language& texts, Item item, const std::string& name, const std::string& place);
    /// Counts the work that a language was; throws if all together were too much.
    void count_work(const Language& language, const std::string& place);
    void count_work(std::size_t n_states, const std::string& place);
    [[nodiscard]] NodeId integer(const NumberBounds& bounds);
    [[nodiscard]] NodeId number(const NumberBounds& bounds);
    /// A string that is none of `names`, written without escapes.
    [[nodiscard]] NodeId other_key(const std::vector<std::string>& names);

    [[nodiscard]] NodeId object(NodeId members);
    /// An object's members, each of a ListItem. `one_more`: at least one that is not required is there.
    [[nodiscard]] NodeId members(const std::vector<NodeId>& all, const std::string& kinds, bool one_more);
    /// Members, or items, of which min to max are there; nothing if it takes too many states. Those of any number come last, and
    /// count as one towards `min`.
    [[nodiscard]] std::optional<NodeId> counted_list(const std::vector<NodeId>& all, const std::string& kinds,
                                                     std::uint32_t min, std::uint32_t max);
    /// min to max times `item`, after `first` ones.
    [[nodiscard]] NodeId array(const std::vector<NodeId>& first, std::optional<NodeId> item, std::uint32_t min,
                               std::uint32_t max);
    /// min to max of `texts`, none twice, in any order.
    [[nodiscard]] NodeId unique_array(const std::vector<std::string>& texts, std::uint32_t min, std::uint32_t max);
    [[nodiscard]] NodeId comma();
    [[nodiscard]] Grammar& grammar() { return grammar_; }

private:
    [[nodiscard]] NodeId narrowed(const std::string& pattern, const RegexPart& part, const SizeBounds& bounds,
                                  const std::string& place);
    /// Texts of a language with bounds, or nothing if that takes too many states.
    [[nodiscard]] std::optional<Language> of_lengths(const Language& language, const SizeBounds& bounds,
                                                     const std::string& place);
    /// Some texts of a language with bounds, the longest of them as long as the number of states allows.
    [[nodiscard]] Language shorter(const Language& language, SizeBounds bounds, const std::string& place);
    [[nodiscard]] NodeId write_set(const CodeSet& set);
    [[nodiscard]] NodeId quoted(NodeId inside);
    [[nodiscard]] NodeId digits(std::uint32_t min, std::uint32_t max);

    Grammar& grammar_;
    RuleId space_ = 0, value_ = 0, string_ = 0, number_ = 0, integer_ = 0;
    NodeId character_ = 0;  // of a string
    const WriteSet write_set_ = [this](const CodeSet& set) { return write_set(set); };
    std::vector<std::pair<std::string, RuleId>> patterns_;
    std::map<std::string, RuleId> items_;
    std::size_t work_ = 0;  // of languages
};

}  // namespace fovea::grammar
