// Calls of tools as text: what stands between a dialect's marks is read by its syntax.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "host/base/json.h"
#include "host/chat/dialect.h"
#include "host/chat/known_tools.h"

namespace fovea {

struct ToolCall {
    std::string name = {};
    Json arguments = Json::object();
    std::size_t at = 0;  ///< bytes of the answer's text before it
};

/// Calls that a text begins with. `n_bytes` of it are theirs; 0: it begins with none.
struct ReadCalls {
    std::vector<ToolCall> calls = {};
    std::size_t n_bytes = 0;
    bool is_cut = false;  ///< none, but more text could make it calls
};

/// Reads the text behind a dialect's `open`, up to its `close`, or to the text's end where that is missing. JSON is read in
/// every dialect. An argument between tags is a text or JSON as `tools` have it.
[[nodiscard]] ReadCalls read_calls(const Dialect& dialect, const KnownTools& tools, std::string_view text);

/// A message whose header names a tool: its arguments. Empty calls: it is none.
[[nodiscard]] ReadCalls read_message_call(std::string_view name, std::string_view text);

}  // namespace fovea
