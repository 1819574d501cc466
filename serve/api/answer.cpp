#include "serve/api/answer.h"

#include <ctime>

#include "host/base/hash.h"

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

std::string written(const Json& json) { return json_text(json); }

std::string as_event(const std::string& name, const Json& json) {
    return "event: " + name + "\ndata: " + written(json) + "\n\n";
}

std::string as_event(const Json& json) { return "data: " + written(json) + "\n\n"; }

std::string error_body(std::string_view path, int status, const std::string& message, const std::string& param,
                       const std::string& code) {
    if (path.starts_with("/api/")) return written({{"error", message}});
    const bool is_anthropic = path.starts_with("/v1/messages");
    const char* type = status == 401                   ? "authentication_error"
                       : status == 403                 ? "permission_error"
                       : status == 404                 ? "not_found_error"
                       : status == 429                 ? "rate_limit_error"
                       : status == 413 && is_anthropic ? "request_too_large"
                       : status >= 500                 ? is_anthropic ? "api_error" : "server_error"
                                                       : "invalid_request_error";
    if (is_anthropic) return written({{"type", "error"}, {"error", {{"type", type}, {"message", message}}}});
    return written({{"error",
                     {{"message", message},
                      {"type", type},
                      {"param", param.empty() ? Json() : Json(param)},
                      {"code", code.empty() ? Json() : Json(code)}}}});
}

const char* finish_word(FinishReason finish) {
    return finish == FinishReason::length || finish == FinishReason::context ? "length" : "stop";
}

std::int64_t unix_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string utc_time(std::int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    gmtime_r(&time, &parts);
    char text[40];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::size_t n_characters(const std::string& text) {
    std::size_t n = 0;
    for (const char c : text) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return n;
}

std::string call_id(const std::string& answer, std::size_t choice, std::size_t index) {
    constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::uint64_t hash = hash_text(answer + '/' + std::to_string(choice) + '/' + std::to_string(index));
    std::string id(9, '0');
    for (char& c : id) {
        c = kDigits[hash % kDigits.size()];
        hash /= kDigits.size();
    }
    return id;
}

}  // namespace fovea::serve
