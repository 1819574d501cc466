// Schemas that hold under a condition, and what a schema excludes: said as alternatives.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/grammar/json_merge.h"

namespace fovea::grammar {

/// Keywords that say alternatives, which two schemas that hold together may both have.
inline constexpr const char* kSplitting[] = {"if",          "anyOf", "oneOf", "dependentRequired", "dependentSchemas",
                                             "dependencies"};

/// What a schema is without references at its top.
using Resolve = std::function<Json(const Json&)>;

/// Alternatives of a schema that has `if`: where it holds, with `then`, and where it does not, with `else`.
[[nodiscard]] Json without_if(const Json& given);

/// Alternatives of a schema whose `not` is of any kind that this can say: each with what the others leave of it, which is
/// types and values. Nothing where that is all there is already. Throws GrammarError, naming what it cannot say.
[[nodiscard]] std::optional<Json> split_not(const Json& given, const Resolve& resolve, const std::string& place);

/// Whether no text can fit: a required property has no values left, by its type, constants or what is not among them.
[[nodiscard]] bool is_impossible(const Json& schema, int depth = 0);

/// Whether a schema has a keyword of alternatives that one of its `allOf` has too: that one is said first.
[[nodiscard]] bool splits_twice(const Json& given, const Resolve& resolve);

}  // namespace fovea::grammar
