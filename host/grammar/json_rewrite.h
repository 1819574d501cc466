// Keywords that exclude or imply, said by the others: what a grammar can keep follows, what it cannot is refused by name.
#pragma once
#include <string>

#include "host/grammar/json_merge.h"

namespace fovea::grammar {

/// Whether a schema's `not` is a list of strings beside the type string alone, which is as far as without_not can say it.
[[nodiscard]] bool excludes_strings(const Json& schema);

/// A schema that fits what `given`, which has no references, alternatives or merged schemas at its top, fits: without its
/// `not`, or with one that excludes_strings. `excluded` is that `not` without references at its top. Throws GrammarError.
[[nodiscard]] Json without_not(const Json& given, const Json& excluded, const std::string& place);

/// The same without the first entry of `keyword`, one of dependentRequired, dependentSchemas, dependencies: as alternatives.
/// Throws GrammarError.
[[nodiscard]] Json without_dependency(const Json& given, const char* keyword, const std::string& place);

/// An object whose propertyNames are listed in `names`: those alone are its properties. Throws GrammarError.
[[nodiscard]] Json with_names(const Json& given, const Json& names, const std::string& place);

}  // namespace fovea::grammar
