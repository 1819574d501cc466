// Conditions and exclusions of schemas, written as alternatives.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/grammar/json_merge.h"

namespace fovea::grammar {

/// A schema without references at its top.
using Resolve = std::function<Json(const Json&)>;

/// Alternatives of a schema that has `if`: `if` holds, with `then`; `if` does not hold, with `else`.
[[nodiscard]] Json without_if(const Json& given);

/// Alternatives of a schema with a `not`, where this can say it: each with the types and values that the others leave
/// of it. Nothing if those are all there is already. Throws GrammarError, naming what it cannot say.
[[nodiscard]] std::optional<Json> split_not(const Json& given, const Resolve& resolve, const std::string& place);

/// Whether no text can fit: a required property has no values left, by its type, constants or excluded values.
[[nodiscard]] bool is_impossible(const Json& schema, int depth = 0);

/// Whether a schema shares a keyword of alternatives with one of its `allOf`: that one's is said first.
[[nodiscard]] bool splits_twice(const Json& given, const Resolve& resolve);

}  // namespace fovea::grammar
