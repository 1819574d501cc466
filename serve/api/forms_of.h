// The form that a request asks for, from its fields to the compiled one.
#pragma once
#include <string>

#include "serve/api/request.h"
#include "serve/jobs/forms.h"

namespace fovea::serve {

/// What Job::constrain is to be; empty where any text will do. Throws RequestError.
[[nodiscard]] Constrain form_of(const Request& request, Forms& forms);

/// The schema of a call of one of the tools: an object of a name and arguments. `name` empty: any of them.
[[nodiscard]] Json schema_of_calls(const Json& tools, const std::string& name);

}  // namespace fovea::serve
