// The form that a request asks for, from its fields to the compiled one.
#pragma once
#include <optional>
#include <string>

#include "host/text/forced_call.h"
#include "serve/api/request.h"
#include "serve/jobs/forms.h"

namespace fovea::serve {

/// The call that a request's answer must be, as the model writes it: null where it may be a text. `chat`: its way to talk;
/// null: it has none, and is shown no mark. Throws RequestError.
[[nodiscard]] std::optional<ForcedCall> forced_call_of(const Request& request, const ModelChat* chat);

/// What Job::constrain is to be; empty where any text will do. Throws RequestError.
[[nodiscard]] Constrain form_of(const Request& request, const ModelChat* chat, Forms& forms);

}  // namespace fovea::serve
