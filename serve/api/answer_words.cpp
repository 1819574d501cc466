// Pieces of answers that more than one endpoint has.
#include <bit>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "serve/api/answer.h"

namespace fovea::serve {

std::string written(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string as_event(const Json& json) { return "data: " + written(json) + "\n\n"; }

std::string error_body(std::string_view path, int status, const std::string& message, const std::string& param,
                       const std::string& code) {
    if (path.starts_with("/api/")) return written({{"error", message}});
    const char* type = status == 401   ? "authentication_error"
                       : status == 403 ? "permission_error"
                       : status == 404 ? "not_found_error"
                       : status == 429 ? "rate_limit_error"
                       : status >= 500 ? "server_error"
                                       : "invalid_request_error";
    return written({{"error",
                     {{"message", message},
                      {"type", type},
                      {"param", param.empty() ? Json() : Json(param)},
                      {"code", code.empty() ? Json() : Json(code)}}}});
}

const char* finish_word(FinishReason finish) {
    return finish == FinishReason::length || finish == FinishReason::context ? "length" : "stop";
}

namespace {

Json chance(const TokenChance& token) {
    Json bytes = Json::array();
    for (const char c : token.bytes) bytes.push_back(static_cast<unsigned char>(c));
    return {{"token", token.bytes}, {"logprob", token.logprob}, {"bytes", bytes}};
}

}  // namespace

Json chat_logprobs(const std::vector<ChosenToken>& tokens) {
    Json content = Json::array();
    for (const ChosenToken& token : tokens) {
        Json one = chance(token);
        one["top_logprobs"] = Json::array();
        for (const TokenChance& other : token.likeliest) one["top_logprobs"].push_back(chance(other));
        content.push_back(std::move(one));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json completion_logprobs(const std::vector<ChosenToken>& tokens, std::size_t n_chars) {
    Json words = Json::array(), chances = Json::array(), likeliest = Json::array(), offsets = Json::array();
    for (const ChosenToken& token : tokens) {
        words.push_back(token.bytes);
        chances.push_back(token.logprob);
        Json top = Json::object();
        for (const TokenChance& other : token.likeliest) top[other.bytes] = other.logprob;
        likeliest.push_back(std::move(top));
        offsets.push_back(n_chars);
        n_chars += n_characters(token.bytes);
    }
    return {{"tokens", std::move(words)},
            {"token_logprobs", std::move(chances)},
            {"top_logprobs", std::move(likeliest)},
            {"text_offset", std::move(offsets)}};
}

Json openai_calls(const std::string& id, std::size_t choice, const std::vector<ToolCall>& calls, std::size_t from,
                  bool with_index) {
    Json list = Json::array();
    for (std::size_t i = from; i < calls.size(); ++i) {
        Json call = Json::object();
        if (with_index) call["index"] = i;
        call["id"] = "call_" + id + "_" + std::to_string(choice) + "_" + std::to_string(i);
        call["type"] = "function";
        call["function"] = {{"name", calls[i].name}, {"arguments", written(calls[i].arguments)}};
        list.push_back(std::move(call));
    }
    return list;
}

std::vector<float> shortened(std::vector<float> vector, std::size_t n) {
    if (!n || n >= vector.size()) return vector;
    vector.resize(n);
    return with_length_1(std::move(vector));
}

std::vector<float> with_length_1(std::vector<float> vector) {
    double squares = 0;
    for (const float value : vector) squares += static_cast<double>(value) * static_cast<double>(value);
    const double length = std::sqrt(squares);
    if (length > 0)
        for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / length);
    return vector;
}

std::string base64(const std::vector<float>& values) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes, out;
    for (const float value : values) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xff);
    }
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t j = 0; j < 3; ++j)
            three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
        for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[three >> (18 - 6 * j) & 63];
    }
    return out;
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

}  // namespace fovea::serve
