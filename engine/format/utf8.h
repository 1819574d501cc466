// UTF-8, read strictly: no overlong forms, no surrogates, nothing above U+10FFFF (Unicode Standard, table 3-7).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fovea {

inline constexpr std::uint32_t kNotACharacter = 0xffffffffu;

/// `text` from `pos` <= text.size() on. (string_view::substr can throw; nothing here may.)
[[nodiscard]] constexpr std::string_view tail(std::string_view text, std::size_t pos) noexcept {
    return {text.data() + pos, text.size() - pos};
}

struct Character {
    std::uint32_t code = kNotACharacter;  ///< kNotACharacter: a byte that belongs to no character
    std::uint32_t bytes = 1;
};

/// Bytes of the character that `lead` starts; 0 if none can start with it.
[[nodiscard]] constexpr std::uint32_t utf8_bytes(std::uint8_t lead) noexcept {
    return lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

/// Whether `next` can follow the `n` bytes at `held`, an unfinished character.
[[nodiscard]] constexpr bool utf8_continues(const std::uint8_t* held, std::uint32_t n, std::uint8_t next) noexcept {
    const std::uint8_t lead = held[0];
    std::uint8_t low = 0x80, high = 0xbf;
    if (n == 1) {
        if (lead == 0xe0) low = 0xa0;
        if (lead == 0xed) high = 0x9f;
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f;
    }
    return next >= low && next <= high;
}

/// The character at the start of `text`, which is not empty. Bytes that are none come one at a time.
[[nodiscard]] constexpr Character first_character(std::string_view text) noexcept {
    const auto lead = static_cast<std::uint8_t>(text[0]);
    if (lead < 0x80) return {lead, 1};
    const std::uint32_t n = utf8_bytes(lead);
    if (n == 0 || n > text.size()) return {};
    std::uint32_t code = lead & (0x7fu >> n);
    for (std::uint32_t i = 1; i < n; ++i) {
        const auto next = static_cast<std::uint8_t>(text[i]);
        if (!utf8_continues(&lead, i, next)) return {};
        code = code << 6 | (next & 0x3fu);
    }
    return {code, n};
}

/// The character at the end of `text`, which is not empty.
[[nodiscard]] constexpr Character last_character(std::string_view text) noexcept {
    for (std::size_t n = 1; n <= 4 && n <= text.size(); ++n) {
        const Character c = first_character(tail(text, text.size() - n));
        if (c.bytes == n && c.code != kNotACharacter) return c;
    }
    return {};
}

/// Text in memory that was given.
class TextSink {
public:
    explicit TextSink(std::span<char> room) noexcept : room_(room) {}
    /// False, and nothing is written, if it does not fit.
    bool put(std::string_view text) noexcept {
        if (text.size() > room_.size() - n_) return false;
        for (const char c : text) room_[n_++] = c;
        return true;
    }
    [[nodiscard]] std::string_view text() const noexcept { return {room_.data(), n_}; }

private:
    std::span<char> room_;
    std::size_t n_ = 0;
};

/// Writes `code`, a character, to `out` (4 bytes); returns how many.
[[nodiscard]] constexpr std::uint32_t put_character(std::uint32_t code, char* out) noexcept {
    if (code < 0x80) {
        out[0] = static_cast<char>(code);
        return 1;
    }
    const std::uint32_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (std::uint32_t i = n; i-- > 1; code >>= 6) out[i] = static_cast<char>(0x80 | (code & 0x3f));
    out[0] = static_cast<char>((0xf00u >> n & 0xffu) | code);
    return n;
}

}  // namespace fovea
