// The items that responses are made of: what a conversation is given as, what it is kept as, and what it is listed as.
#pragma once
#include <string>

#include "serve/api/service.h"

namespace fovea::serve {

/// One that is to be gone on from. Throws RequestError where there is none of this user's.
[[nodiscard]] StoredResponse stored_response(const std::string& id, const std::string& user,
                                             const StoredResponses& stored);
/// Adds items that read_items takes, or a text as one, with what it reads of them. Those without an id get one of this response.
void add_items(const Json& given, const std::string& response, Json& items);
/// A request with stored items in place of references to them.
[[nodiscard]] Json resolved(Json body, const std::string& user, const StoredResponses& stored);

}  // namespace fovea::serve
