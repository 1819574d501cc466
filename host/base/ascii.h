// Characters of ASCII, whatever the locale.
#pragma once
#include <string>
#include <string_view>

namespace fovea {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr bool is_letter(char c) noexcept { return is_lower(c) || is_upper(c); }
[[nodiscard]] constexpr bool is_letter_or_digit(char c) noexcept { return is_letter(c) || is_digit(c); }
[[nodiscard]] constexpr bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

[[nodiscard]] constexpr char to_upper(char c) noexcept { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
[[nodiscard]] constexpr char to_lower(char c) noexcept { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

[[nodiscard]] inline std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = to_lower(c);
    return out;
}

/// A hexadecimal digit's value, or -1.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
    if (is_digit(c)) return c - '0';
    const char lower = to_lower(c);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace fovea
