// Forms of a call's arguments in the syntaxes that are not JSON, as the templates of their dialects write them.
#pragma once
#include "host/base/json.h"
#include "host/chat/dialect.h"
#include "host/grammar/grammar.h"

namespace fovea {

/// Whether a function's arguments have such a form: the dialect has such a syntax, and the schema of `parameters` is of named
/// properties that it can write.
[[nodiscard]] bool has_own_form(const Dialect& dialect, const Json& parameters);
/// What stands between a function's name and the call's end: own_call_words. Throws grammar::GrammarError for what is no schema.
[[nodiscard]] grammar::NodeId add_own_form(grammar::Grammar& grammar, const Dialect& dialect, const Json& parameters,
                                           const grammar::SchemaOptions& options);

/// Whether a name of functions or arguments stands as it is in every syntax.
[[nodiscard]] bool is_plain_name(std::string_view name);

}  // namespace fovea
