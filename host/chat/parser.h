// Tokens to statements.
#pragma once
#include <string_view>

#include "host/chat/syntax.h"

namespace fovea::chat {

/// Of expressions within each other, and of blocks: Python's own limit for blocks is 20, for brackets 200.
inline constexpr std::uint32_t kMostHeight = 200;

/// Throws ChatTemplateError.
[[nodiscard]] Block parse_block(std::string_view text);

}  // namespace fovea::chat
