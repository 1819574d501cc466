#include "host/chat/text.h"

#include <algorithm>

namespace fovea::chat {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Line ends of str.splitlines.
bool ends_line(std::uint32_t c) {
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

std::size_t last_character(std::string_view text) {
    const std::size_t least = text.size() > 4 ? text.size() - 4 : 0;
    for (std::size_t at = least; at < text.size(); ++at)
        if (at + character_bytes(text, at) == text.size()) return at;
    return text.size() - 1;
}

}  // namespace

std::size_t character_bytes(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const unsigned char first = byte(0);
    const std::size_t n = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (n < 2 || at + n > text.size()) return 1;
    for (std::size_t i = 1; i < n; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 1;
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
        (first == 0xf4 && byte(1) > 0x8f))
        return 1;
    return n;
}

std::int64_t count_characters(std::string_view text) {
    std::int64_t n = 0;
    for (std::size_t at = 0; at < text.size(); at += character_bytes(text, at)) ++n;
    return n;
}

std::vector<std::string_view> characters(std::string_view text) {
    std::vector<std::string_view> all;
    for (std::size_t at = 0, n; at < text.size(); at += n) {
        n = character_bytes(text, at);
        all.push_back(text.substr(at, n));
    }
    return all;
}

std::uint32_t code_point(std::string_view c) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(c[i])); };
    switch (c.size()) {
        case 2: return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
        case 3: return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
        case 4: return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
        default: return byte(0) < 0x80 ? byte(0) : 0xdc00 + byte(0);
    }
}

std::string encode(std::uint32_t c) {
    const auto low = [&](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
    if (c < 0x80) return {static_cast<char>(c)};
    if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), low(0)};
    if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), low(6), low(0)};
    return {static_cast<char>(0xf0 | c >> 18), low(12), low(6), low(0)};
}

bool is_space(std::uint32_t c) {
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::string_view strip(std::string_view text, Side side, const std::string_view* set) {
    std::vector<std::string_view> all;
    if (set) all = characters(*set);
    std::sort(all.begin(), all.end());
    const auto goes = [&](std::string_view c) {
        return set ? std::binary_search(all.begin(), all.end(), c) : is_space(code_point(c));
    };
    while (side != Side::right && !text.empty()) {
        const std::size_t n = character_bytes(text, 0);
        if (!goes(text.substr(0, n))) break;
        text.remove_prefix(n);
    }
    while (side != Side::left && !text.empty()) {
        const std::size_t at = last_character(text);
        if (!goes(text.substr(at))) break;
        text.remove_suffix(text.size() - at);
    }
    return text;
}

std::string upper(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), to_upper);
    return out;
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), to_lower);
    return out;
}

std::string title(std::string_view text) {
    std::string out(text);
    bool within = false;
    for (char& c : out) {
        c = within ? to_lower(c) : to_upper(c);
        within = is_letter(c);
    }
    return out;
}

std::string capitalize(std::string_view text) {
    std::string out = lower(text);
    if (!out.empty()) out[0] = to_upper(out[0]);
    return out;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
    std::vector<std::string_view> lines;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t n = character_bytes(text, at);
        if (!ends_line(code_point(text.substr(at, n)))) {
            at += n;
            continue;
        }
        const std::size_t end = at + (text.substr(at, 2) == "\r\n" ? 2 : n);
        lines.push_back(text.substr(begin, (keep_ends ? end : at) - begin));
        begin = at = end;
    }
    if (begin < text.size()) lines.push_back(text.substr(begin));
    return lines;
}

std::vector<std::string_view> split_spaces(std::string_view text, std::int64_t most) {
    std::vector<std::string_view> parts;
    for (text = strip(text, Side::left); !text.empty(); text = strip(text, Side::left)) {
        if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
            parts.push_back(text);
            break;
        }
        std::size_t end = 0;
        while (end < text.size() && !is_space(code_point(text.substr(end, character_bytes(text, end)))))
            end += character_bytes(text, end);
        parts.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return parts;
}

}  // namespace fovea::chat
