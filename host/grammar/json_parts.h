// The parts that JSON texts are made of, as expressions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/grammar/grammar.h"
#include "host/grammar/json_numbers.h"
#include "host/grammar/regex.h"

namespace fovea::grammar {

struct StringBounds {
    std::uint32_t min = 0, max = kNoLimit;  ///< characters
};

class JsonParts {
public:
    JsonParts(Grammar& grammar, bool compact);

    [[nodiscard]] NodeId space() { return grammar_.rule(space_); }
    [[nodiscard]] NodeId any_value() { return grammar_.rule(value_); }
    [[nodiscard]] NodeId string(const StringBounds& bounds = {});
    /// Texts in which `pattern` is found, as strings. Throws if a grammar can't say that together with the bounds.
    [[nodiscard]] NodeId pattern(const std::string& pattern, const StringBounds& bounds, const std::string& place);
    /// Strings of a format by its name. One that JSON Schema has and we do not is refused; any other says nothing of a
    /// text.
    [[nodiscard]] NodeId format(const std::string& name, const StringBounds& bounds, const std::string& place);
    [[nodiscard]] NodeId integer(const NumberBounds& bounds);
    [[nodiscard]] NodeId number(const NumberBounds& bounds);
    /// A string that is none of `names`, written without escapes.
    [[nodiscard]] NodeId other_key(const std::vector<std::string>& names);

    [[nodiscard]] NodeId object(NodeId members);
    /// An object's members, each of a ListItem. `one_more`: at least one that is not required is there.
    [[nodiscard]] NodeId members(const std::vector<NodeId>& all, const std::string& kinds, bool one_more);
    /// min to max times `item`, after `first` ones.
    [[nodiscard]] NodeId array(const std::vector<NodeId>& first, std::optional<NodeId> item, std::uint32_t min,
                               std::uint32_t max);
    /// min to max of `texts`, none twice, in any order.
    [[nodiscard]] NodeId unique_array(const std::vector<std::string>& texts, std::uint32_t min, std::uint32_t max);
    [[nodiscard]] NodeId comma();
    [[nodiscard]] Grammar& grammar() { return grammar_; }

private:
    [[nodiscard]] NodeId write_set(const CodeSet& set);
    [[nodiscard]] NodeId quoted(NodeId inside);
    [[nodiscard]] NodeId digits(std::uint32_t min, std::uint32_t max);

    Grammar& grammar_;
    RuleId space_ = 0, value_ = 0, string_ = 0, number_ = 0, integer_ = 0;
    NodeId character_ = 0;  // of a string
    std::vector<std::pair<std::string, RuleId>> patterns_;
};

}  // namespace fovea::grammar
