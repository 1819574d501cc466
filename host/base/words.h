// Numbers, shapes and names as messages have them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/type.h"

namespace fovea {

/// 1572864 becomes "1,572,864".
[[nodiscard]] std::string with_separators(std::uint64_t number);

/// A shape as messages have it: "[2, 3]".
[[nodiscard]] std::string shape_words(const std::vector<std::uint64_t>& shape);

/// "f32" for Type::f32.
[[nodiscard]] const char* type_name(Type type) noexcept;

/// What an error number of the system means, to end a line with: "permission denied".
[[nodiscard]] std::string system_error(int error);

/// A text in which control characters are question marks.
[[nodiscard]] std::string printable(std::string_view text);

/// A text without the blanks at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text, std::string_view blanks = " ");

/// `text` as part of one line: control characters become '?', and a very long text is cut.
[[nodiscard]] std::string one_line(std::string_view text);

/// "a, b, c".
[[nodiscard]] std::string joined(std::span<const char* const> names);

/// Sixteen hexadecimal digits.
[[nodiscard]] std::string hex(std::uint64_t number);

}  // namespace fovea
