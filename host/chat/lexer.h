// A template's text as tokens: data between tags, and what stands inside them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::chat {

enum class TokenKind : std::uint8_t {
    data,
    print_begin,
    print_end,
    block_begin,
    block_end,
    name,
    text,  ///< a string literal, its escapes read
    integer,
    real,
    sign,  ///< an operator or a bracket
    end,
};

struct Token {
    TokenKind kind = TokenKind::end;
    std::string text;
    std::uint32_t line = 0;
};

/// Line breaks become "\n" and the last one goes; white space around tags goes as trim_blocks, lstrip_blocks and the tags'
/// own signs want it. Throws ChatTemplateError. The last token is `end`.
[[nodiscard]] std::vector<Token> read_tokens(std::string_view text);

}  // namespace fovea::chat
