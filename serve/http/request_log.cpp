#include "serve/http/request_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea::serve {

RequestLog::RequestLog(const std::string& path, bool with_texts) : with_texts_(with_texts) {
    constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    const int file = ::open(path.c_str(), kFlags, with_texts ? 0600 : 0666);  // nobody else reads users' texts
    if (file >= 0) file_.reset(::fdopen(file, "a"));
    if (!file_) throw host::Error(path + ": expected a file that can be written, got " + system_error(errno));
}

void RequestLog::add(LoggedRequest& request, const std::vector<Event>& events) const {
    if (!request.first && !events.empty()) request.first = Clock::now();
    for (const Event& event : events) {
        if (with_texts_ && !event.text.empty()) {
            if (request.answered.size() <= event.choice) request.answered.resize(event.choice + 1);
            request.answered[event.choice] += event.text;
        }
        if (event.failure.status) continue;
        if (request.of_choice.size() <= event.choice) request.of_choice.resize(event.choice + 1);
        LoggedRequest::Tokens& known = request.of_choice[event.choice];
        known = {std::max(known.n_prompt, event.n_prompt), std::max(known.n_shared, event.n_shared),
                 std::max(known.n_new, event.n_new)};
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
        std::uint64_t n_prompt = 0, n_shared = 0, n_new = 0;
        for (std::size_t i = 0; i < request.of_choice.size(); ++i) {
            const LoggedRequest::Tokens& tokens = request.of_choice[i];
            n_new += tokens.n_new;
            if (i % request.n_each) continue;  // a prompt counts once
            n_prompt += tokens.n_prompt;
            n_shared += tokens.n_shared;
        }
        line["model"] = request.model;
        line["stream"] = request.stream;
        line["prompt_tokens"] = n_prompt;
        line["cached_tokens"] = n_shared;
        line["completion_tokens"] = n_new;
        line["first_ms"] = request.first ? Json(milliseconds(*request.first)) : Json();
    }
    if (!error.empty()) line["error"] = error;
    if (with_texts_ && !request.asked.empty()) line["request"] = read_json(request.asked);
    if (with_texts_ && !request.answered.empty()) line["answers"] = request.answered;
    std::fputs((written(line) + '\n').c_str(), file_.get());
    std::fflush(file_.get());
}

}  // namespace fovea::serve
