// Python's operations on texts, by characters. Bytes that are no UTF-8 count as a character each.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::chat {

/// Takes the first character from the front of `text`, which is not empty.
[[nodiscard]] std::string_view take_character(std::string_view& text);
[[nodiscard]] std::int64_t count_characters(std::string_view text);
[[nodiscard]] std::vector<std::string_view> characters(std::string_view text);
/// The code point of one character; of a byte that is none, 0xdc00 + byte, as Python's surrogateescape has it.
[[nodiscard]] std::uint32_t code_point(std::string_view character);
[[nodiscard]] std::string encode(std::uint32_t code_point);

/// str.isspace of one character.
[[nodiscard]] bool is_space(std::uint32_t code_point);
enum class Side { left, right, both };
/// str.strip: white space, or if `set` is not null its characters.
[[nodiscard]] std::string_view strip(std::string_view text, Side side, const std::string_view* set = nullptr);

[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::string title(std::string_view text);
[[nodiscard]] std::string capitalize(std::string_view text);
/// str.splitlines(keepends).
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
/// str.split() of white space, at most `most` cuts; -1: all.
[[nodiscard]] std::vector<std::string_view> split_spaces(std::string_view text, std::int64_t most);

}  // namespace fovea::chat
