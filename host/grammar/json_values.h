// What a schema says of single values: their types, their bounds, and whether a constant keeps to them. How deep one is.
#pragma once
#include <string>

#include "host/grammar/json_merge.h"
#include "host/grammar/json_parts.h"
#include "host/grammar/json_references.h"

namespace fovea::grammar {

/// Whether a value is of this type; nothing if there is no such type.
[[nodiscard]] std::optional<bool> has_type(const Json& value, std::string_view type);
/// Whether a value is of the type that a schema names. Throws GrammarError if there is no such type.
[[nodiscard]] bool is_of_type(const Json& value, const Json& type, const std::string& place);
/// The bounds of a number, or of whole ones. Throws GrammarError if a number's bound has more than fifteen digits.
[[nodiscard]] NumberBounds bounds(const Json& given, const std::string& place, bool whole);
/// The value of multipleOf, as the decimal that it is written as. Throws GrammarError if it is none.
[[nodiscard]] Decimal step_of(const Json& given, const std::string& place);
/// Whether a number, as the decimal that it is written as, is a multiple.
[[nodiscard]] bool is_multiple(double number, const Decimal& step, const std::string& place);
/// Whether a constant keeps to type, const, bounds and lengths beside it.
[[nodiscard]] bool fits(const Json& value, const Json& given, const std::string& place);

/// The values of enum or const, each once, that keep to what stands beside it. Throws GrammarError where a keyword beside it is
/// none that this looks at.
[[nodiscard]] std::vector<Json> constant_values(const Json& given, References& references, const std::string& place);

/// Throws GrammarError if brackets stand deeper than `most` in brackets, so that nothing that reads the schema goes too
/// deep.
void check_nesting(std::string_view json, std::uint32_t most);

}  // namespace fovea::grammar
