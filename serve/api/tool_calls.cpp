#include "serve/api/tool_calls.h"

#include <algorithm>
#include <optional>

namespace fovea::serve {
namespace {

/// Bytes at the text's end that the mark may begin with.
std::size_t begun(std::string_view text, std::string_view mark) {
    for (std::size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n)
        if (text.ends_with(mark.substr(0, n))) return n;
    return 0;
}

/// {"name": ..., "arguments" or "parameters": {...}}; nothing where it is none.
std::optional<ToolCall> read_tool_call(std::string_view text) {
    try {
        const Json json = read_body(text);
        if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return std::nullopt;
        const auto arguments = json.contains("arguments") ? json.find("arguments") : json.find("parameters");
        if (arguments == json.end()) return ToolCall{.name = json["name"], .arguments = Json::object()};
        if (!arguments->is_object()) return std::nullopt;
        return ToolCall{.name = json["name"], .arguments = *arguments};
    } catch (const RequestError&) {
        return std::nullopt;
    }
}

}  // namespace

std::string ToolCallReader::push(std::string_view text) {
    held_ += text;
    std::string out;
    for (;;) {
        const std::size_t open = held_.find(kCallMark);
        if (open == held_.npos) {
            const std::size_t n = held_.size() - begun(held_, kCallMark);
            out += held_.substr(0, n);
            held_.erase(0, n);
            break;
        }
        out += held_.substr(0, open);
        held_.erase(0, open);
        const std::size_t close = held_.find(kCallEnd);
        if (close == held_.npos) break;
        const std::size_t end = close + kCallEnd.size();
        const std::string_view inside = std::string_view(held_).substr(0, close).substr(kCallMark.size());
        if (auto call = read_tool_call(inside)) {
            call->at = n_out_ + out.size();
            calls_.push_back(std::move(*call));
        } else {
            out += held_.substr(0, end);
        }
        held_.erase(0, end);
    }
    n_out_ += out.size();
    return out;
}

std::string ToolCallReader::finish() {
    std::string rest = std::exchange(held_, {});
    if (!rest.starts_with(kCallMark)) return rest;
    auto call = read_tool_call(std::string_view(rest).substr(kCallMark.size()));  // the model ended without the mark
    if (!call) return rest;
    call->at = n_out_;
    calls_.push_back(std::move(*call));
    return {};
}

}  // namespace fovea::serve
