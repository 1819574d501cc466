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

/// What is to be compiled, which waits for its turn in few bytes.
struct FormText {
    Form form = Form::any;
    std::string text = {};  ///< a grammar, an expression or a schema; of a call the functions that may be called
    bool compact = false;
    std::string field = {};  ///< that names it
    std::string tool = {};   ///< the function that is called; empty: any of them
    std::string mark = {};   ///< behind which the form begins; empty: at once
};
/// Throws RequestError where it is too long.
[[nodiscard]] FormText form_text_of(const Request& request);

/// What Job::constrain is to be; empty where any text will do. Throws RequestError.
[[nodiscard]] Constrain form_of(const FormText& form, const ModelChat* chat, Forms& forms);

}  // namespace fovea::serve
