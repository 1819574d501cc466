#include "serve/api/answer.h"

namespace fovea::serve {

std::string Answer::add(const std::vector<Event>& events) {
    std::string out;
    for (const Event& event : events) {
        if (event.failure.status) {
            if (!failure_.status) failure_ = event.failure;
            n_ended_ = n_choices_;
            continue;
        }
        n_ended_ += event.ended;
        out += take(event);
    }
    return out;
}

std::string Answer::openai_failure() const {
    return "data: " + error_body({}, failure_.status, failure_.message) + "\n\n";
}

}  // namespace fovea::serve
