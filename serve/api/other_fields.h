// The fields of requests that are for no texts: of vectors, ranks, tokens and models.
#pragma once
#include <initializer_list>

#include "serve/api/endpoint.h"
#include "serve/api/fields.h"

namespace fovea::serve {

/// The request's object, of which these fields are `read`. Others are refused where they would change an answer elsewhere, or look
/// like one that is read; those that change no answer are passed over, and the answer's header has the names of the rest.
[[nodiscard]] Fields fields_of(Call& call, std::initializer_list<const char*> read);

/// The same for an object that did not come as JSON. The names of the rest, with commas between them.
[[nodiscard]] std::string check_fields(const Fields& fields, std::initializer_list<const char*> read);

}  // namespace fovea::serve
