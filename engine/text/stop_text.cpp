#include "engine/text/stop_text.h"

#include "engine/format/utf8.h"

namespace fovea {
namespace {

[[nodiscard]] bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const Character c = first_character(text);
        if (c.code == kNotACharacter) return false;
        text.remove_prefix(c.bytes);
    }
    return true;
}

/// How many of the string's first bytes the text ends with, after `byte` follows `n` of them.
[[nodiscard]] std::uint32_t follow(const StopByte* string, std::uint32_t n, char byte) noexcept {
    while (n && string[n].byte != byte) n = string[n - 1].fallback;
    return n + (string[n].byte == byte);
}

}  // namespace

Status StopText::check(std::span<const std::string_view> strings, std::size_t max_bytes) noexcept {
    std::size_t n_bytes = 0;
    for (const std::string_view string : strings) {
        if (string.empty()) return {Code::bad_argument, "bytes of a stop string at least", 1, 0};
        // The text is UTF-8, so no other string is ever found, and none begins within a character.
        if (!is_utf8(string)) return {Code::bad_argument, "stop strings: one is not UTF-8", 0, 0};
        if (string.size() > max_bytes - n_bytes)
            return {Code::buffer_too_small, "bytes of stop strings at least", n_bytes + string.size(), max_bytes};
        n_bytes += string.size();
    }
    return {};
}

void StopText::set(std::span<const std::string_view> strings) noexcept {
    n_used_ = held_ = 0;
    for (const std::string_view string : strings) {
        StopByte* const bytes = bytes_.data() + n_used_;
        for (std::size_t i = 0; i < string.size(); ++i) {
            const std::uint32_t before = i ? bytes[i - 1].fallback : 0;
            bytes[i] = {.byte = string[i]};
            if (i) bytes[i].fallback = static_cast<std::uint16_t>(follow(bytes, before, string[i]));
        }
        bytes[0].length = static_cast<std::uint16_t>(string.size());
        n_used_ += static_cast<std::uint32_t>(string.size());
    }
}

std::uint32_t StopText::push(char byte) noexcept {
    std::uint32_t complete = 0;
    held_ = 0;
    for (std::uint32_t begin = 0; begin < n_used_; begin += bytes_[begin].length) {
        StopByte& first = bytes_[begin];
        first.matched = static_cast<std::uint16_t>(follow(&first, first.matched, byte));
        if (first.matched == first.length && first.length > complete) complete = first.length;
        if (first.matched > held_) held_ = first.matched;
    }
    return complete;
}

}  // namespace fovea
