// One request while it is routed.
#pragma once
#include "serve/http/server.h"

namespace fovea::serve {

struct Server::Call {
    HttpRequest request;
    ExchangePtr exchange;
    Clock::time_point arrived = Clock::now();
    std::string id{};     ///< of this answer
    std::string user{};   ///< whose turn its work is
    Headers headers{};    ///< of every answer to it
    bool ollama = false;  ///< the form of errors

    [[nodiscard]] bool wants_hash() const { return !request.header("x-fovea-logits-hash").empty(); }
};

}  // namespace fovea::serve
