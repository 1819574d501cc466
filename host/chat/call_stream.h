// Calls of tools while they come, in dialects that write arguments as JSON behind the name.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "host/chat/dialect.h"

namespace fovea {

/// What an answer adds to one of its calls.
struct CallPiece {
    std::size_t index = 0;  ///< among the answer's calls
    std::string name = {};  ///< of a call that begins; else empty
    std::string arguments;  ///< JSON, or a part of it
    std::size_t at = 0;     ///< bytes of the answer's text before the call
};

/// Reads the calls between two marks of a dialect, or of one message. Whether they are sound is known when they end.
class CallStream {
public:
    using IsKnown = std::function<bool(const std::string& name)>;
    using OnPiece = std::function<void(std::size_t call, const std::string& name, std::string_view arguments)>;

    CallStream() = default;
    /// tool: of a message, which is its arguments alone; else empty.
    CallStream(const Dialect& dialect, std::string tool);
    /// `text`: all that has come behind the mark. Hands out what is new of calls of known tools, numbered from 0.
    void read(std::string_view text, const IsKnown& is_known, const OnPiece& on_piece);
    /// Calls of which something was handed out.
    [[nodiscard]] std::size_t n_begun() const { return n_begun_; }

private:
    enum class At { name, outside, object, key, colon, value, tool, arguments, other, lost };
    bool find_name(std::string_view text);
    void step(char c, const IsKnown& is_known);
    void enter_value(char c, const IsKnown& is_known);
    /// Follows a value's brackets and texts.
    void follow(char c);

    const Dialect* dialect_ = nullptr;
    At at_ = At::lost;
    bool is_json_ = false;  // objects have names beside the arguments
    std::size_t n_read_ = 0, n_begun_ = 0;
    std::string key_, tool_, made_;  // made_: of the arguments, since the last piece
    std::uint32_t depth_ = 0;
    bool in_text_ = false, is_escaped_ = false, is_begun_ = false;
};

}  // namespace fovea
