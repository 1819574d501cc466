// Rewrites keywords that exclude or imply into others. A keyword that no grammar can keep is refused by name.
#pragma once
#include <string>

#include "host/grammar/json_merge.h"

namespace fovea::grammar {

/// The types that a schema allows, in its order; a null that nullable adds among them.
[[nodiscard]] std::vector<std::string> allowed_types(const Json& schema);

/// Whether a schema says nothing but what a language of strings can: values, patterns, lengths, and anyOf, allOf, not.
[[nodiscard]] bool speaks_of_strings(const Json& schema);
/// Whether a schema's type is string and its `not` speaks of strings: such a `not` stays.
[[nodiscard]] bool excludes_strings(const Json& schema);

/// A schema that fits the same values as `given`, but without its `not`, or with one that excludes_strings. `given` has
/// no references, alternatives or merged schemas at its top. `excluded` is that `not` without references at its top.
/// Throws GrammarError.
[[nodiscard]] Json without_not(const Json& given, const Json& excluded, const std::string& place);

/// The same without the first entry of `keyword`, one of dependentRequired, dependentSchemas, dependencies: as alternatives.
/// Throws GrammarError.
[[nodiscard]] Json without_dependency(const Json& given, const char* keyword, const std::string& place);

/// An object whose propertyNames are `names`: it has no other properties.
[[nodiscard]] Json with_names(const Json& given, const std::vector<Json>& names);

}  // namespace fovea::grammar
