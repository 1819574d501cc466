// Tokens to statements.
#pragma once
#include <string_view>

#include "host/chat/syntax.h"

namespace fovea::chat {

/// Deepest nesting of expressions and blocks. (CPython allows 20 blocks and 200 brackets.)
inline constexpr std::uint32_t kMostHeight = 200;

/// Throws ChatTemplateError.
[[nodiscard]] Block parse_block(std::string_view text);

}  // namespace fovea::chat
