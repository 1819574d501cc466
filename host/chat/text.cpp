#include "host/chat/text.h"

#include <algorithm>

#include "engine/format/utf8.h"
#include "host/base/ascii.h"

namespace fovea::chat {
namespace {

/// Line ends of str.splitlines.
bool ends_line(std::uint32_t c) {
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::string_view take_character(std::string_view& text) {
    const std::string_view first = text.substr(0, first_character(text).bytes);
    text.remove_prefix(first.size());
    return first;
}

std::int64_t count_characters(std::string_view text) {
    std::int64_t n = 0;
    for (; !text.empty(); ++n) (void)take_character(text);
    return n;
}

std::vector<std::string_view> characters(std::string_view text) {
    std::vector<std::string_view> all;
    while (!text.empty()) all.push_back(take_character(text));
    return all;
}

std::uint32_t code_point(std::string_view character) {
    const Character c = first_character(character);
    return c.code != kNotACharacter ? c.code : 0xdc00 + static_cast<std::uint8_t>(character[0]);
}

std::string encode(std::uint32_t code_point) {
    char utf8[4];
    return {utf8, put_character(code_point, utf8)};
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
    for (std::string_view rest = text; side != Side::right && !rest.empty() && goes(take_character(rest));) text = rest;
    while (side != Side::left && !text.empty()) {
        const std::size_t n = last_character(text).bytes;
        if (!goes(text.substr(text.size() - n))) break;
        text.remove_suffix(n);
    }
    return text;
}

std::string upper(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), to_upper);
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
    std::string_view line = text;  // to the text's end
    while (!text.empty()) {
        const std::size_t n = line.size() - text.size();
        const bool is_pair = text.starts_with("\r\n");
        const bool ends = ends_line(code_point(take_character(text)));
        if (is_pair) text.remove_prefix(1);
        if (!ends) continue;
        lines.push_back(line.substr(0, keep_ends ? line.size() - text.size() : n));
        line = text;
    }
    if (!line.empty()) lines.push_back(line);
    return lines;
}

std::vector<std::string_view> split_spaces(std::string_view text, std::int64_t most) {
    std::vector<std::string_view> parts;
    for (text = strip(text, Side::left); !text.empty(); text = strip(text, Side::left)) {
        if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
            parts.push_back(text);
            break;
        }
        std::string_view behind = text;
        for (std::string_view rest = text; !rest.empty() && !is_space(code_point(take_character(rest)));) behind = rest;
        parts.push_back(text.substr(0, text.size() - behind.size()));
        text = behind;
    }
    return parts;
}

}  // namespace fovea::chat
