#include "serve/http/request_log.h"

#include <cerrno>

#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea::serve {

RequestLog::RequestLog(const std::string& path, bool with_texts)
    : file_(std::fopen(path.c_str(), "a")), with_texts_(with_texts) {
    if (!file_) throw host::Error(path + ": expected a file that can be written, got " + system_error(errno));
}

void RequestLog::add(LoggedRequest& request, const std::vector<Event>& events, std::uint32_t n_each) const {
    if (!request.first && !events.empty()) request.first = Clock::now();
    for (const Event& event : events) {
        if (with_texts_ && !event.text.empty()) {
            if (request.answered.size() <= event.choice) request.answered.resize(event.choice + 1);
            request.answered[event.choice] += event.text;
        }
        if (!event.ended || event.failure.status) continue;
        request.n_new += event.n_new;
        if (event.choice % n_each) continue;  // a prompt counts once
        request.n_prompt += event.n_prompt;
        request.n_shared += event.n_shared;
    }
}

void RequestLog::write(const LoggedRequest& request, int status, const std::string& error) {
    const auto milliseconds = [&](Clock::time_point then) {
        return std::chrono::duration_cast<std::chrono::microseconds>(then - request.arrived).count() / 1000.0;
    };
    Json line = {{"time", utc_time(unix_seconds())},
                 {"id", request.id},
                 {"user", request.user},
                 {"method", request.method},
                 {"path", request.path},
                 {"status", status},
                 {"total_ms", milliseconds(Clock::now())}};
    if (!request.model.empty()) {
        line["model"] = request.model;
        line["stream"] = request.stream;
        line["prompt_tokens"] = request.n_prompt;
        line["cached_tokens"] = request.n_shared;
        line["completion_tokens"] = request.n_new;
        line["first_ms"] = request.first ? Json(milliseconds(*request.first)) : Json();
    }
    if (!error.empty()) line["error"] = error;
    if (with_texts_ && !request.asked.is_null()) line["request"] = request.asked;
    if (with_texts_ && !request.answered.empty()) line["answers"] = request.answered;
    std::fputs((written(line) + '\n').c_str(), file_.get());
    std::fflush(file_.get());
}

}  // namespace fovea::serve
