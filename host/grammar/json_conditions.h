// Conditions and exclusions of schemas, written as alternatives.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "host/grammar/json_merge.h"

namespace fovea::grammar {

/// A schema without references at its top.
using Resolve = std::function<Json(const Json&)>;

/// Alternatives of a schema that has `if`: `if` holds, with `then`; `if` does not hold, with `else`.
[[nodiscard]] Json without_if(const Json& given);

/// A schema that has a `not`, as one without it, or with less of it, or as alternatives. Throws GrammarError, naming what it
/// cannot say.
[[nodiscard]] Json split_not(const Json& given, const Resolve& resolve, const std::string& place);

/// Whether no text can fit: a required property has no values left, by its type, constants or excluded values.
[[nodiscard]] bool is_impossible(const Json& schema, int depth = 0);

/// Whether a schema shares a keyword of alternatives with one of its `allOf`: that one's is said first.
[[nodiscard]] bool splits_twice(const Json& given, const Resolve& resolve);

}  // namespace fovea::grammar
