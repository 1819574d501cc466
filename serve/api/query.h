// What a request's target says beside its body: escaped texts, and the fields behind '?'.
#pragma once
#include <string>
#include <string_view>

#include "host/base/json.h"

namespace fovea::serve {

/// "org/name" of "org%2Fname".
[[nodiscard]] std::string unescaped(std::string_view text);
/// "limit=3&order=asc" as an object. Digits become a number, true and false a boolean; of a name twice the last holds. Throws
/// RequestError where there are too many.
[[nodiscard]] Json read_query(std::string_view query);

}  // namespace fovea::serve
