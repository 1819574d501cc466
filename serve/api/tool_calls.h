// Calls of tools in a model's text: <tool_call>{"name": ..., "arguments": {...}}</tool_call>, once or more.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "serve/api/request.h"

namespace fovea::serve {

inline constexpr std::string_view kCallMark = "<tool_call>", kCallEnd = "</tool_call>";

struct ToolCall {
    std::string name;
    Json arguments;      ///< an object
    std::size_t at = 0;  ///< bytes of text before it
};

/// Parts text from calls while it comes. Text is handed out as soon as it cannot begin a call; what looks like a call and
/// is none comes out as text.
class ToolCallReader {
public:
    [[nodiscard]] std::string push(std::string_view text);
    /// No more comes: what is held back, where it is no call.
    [[nodiscard]] std::string finish();
    [[nodiscard]] const std::vector<ToolCall>& calls() const { return calls_; }

private:
    std::string held_;  // from a mark, or what may become one, on
    std::vector<ToolCall> calls_;
    std::size_t n_out_ = 0;  // bytes of text
};

}  // namespace fovea::serve
