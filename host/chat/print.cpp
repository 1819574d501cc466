// Values as text: str, repr and json.dumps as Python has them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "host/chat/text.h"
#include "host/chat/value.h"

namespace fovea::chat {
namespace {

std::string hexadecimal(std::uint32_t number, int n_digits) {
    std::string digits(static_cast<std::size_t>(n_digits), '0');
    for (int i = n_digits; i-- > 0; number >>= 4) digits[static_cast<std::size_t>(i)] = "0123456789abcdef"[number & 15];
    return digits;
}

/// The fewest digits that read back as the same number; an exponent below 1e-4 and from 1e16 on.
std::string real_text(double number, bool json) {
    if (std::isnan(number)) return json ? "NaN" : "nan";
    if (std::isinf(number)) return number < 0 ? (json ? "-Infinity" : "-inf") : (json ? "Infinity" : "inf");
    const double size = std::fabs(number);
    const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
    std::array<char, 64> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                   exponent ? std::chars_format::scientific : std::chars_format::fixed);
    std::string text(digits.data(), end.ptr);
    if (!exponent && text.find('.') == text.npos) text += ".0";
    return text;
}

void add_utf16(std::string& out, std::uint32_t c) {
    if (c < 0x10000) {
        out += "\\u" + hexadecimal(c, 4);
    } else {
        out += "\\u" + hexadecimal(0xd800 + ((c - 0x10000) >> 10), 4) + "\\u" +
               hexadecimal(0xdc00 + ((c - 0x10000) & 0x3ff), 4);
    }
}

void add_json_text(std::string& out, std::string_view text, bool ascii) {
    static constexpr std::string_view kPlain = "\"\\\n\r\t\f\b", kShort = "\"\\nrtfb";
    out += '"';
    for (std::size_t at = 0, n; at < text.size(); at += n) {
        n = character_bytes(text, at);
        const std::string_view one = text.substr(at, n);
        const std::size_t escape = n == 1 ? kPlain.find(one[0]) : kPlain.npos;
        if (escape != kPlain.npos) {
            (out += '\\') += kShort[escape];
        } else if (n == 1 && static_cast<unsigned char>(one[0]) < 0x20) {
            add_utf16(out, code_point(one));
        } else if (ascii && code_point(one) >= 0x80) {
            add_utf16(out, code_point(one));
        } else {
            out += one;
        }
    }
    out += '"';
}

/// False for characters that repr escapes: controls, separators but the space, formats, surrogates, private and no
/// characters. Unassigned code points are left as they are.
bool is_printable(std::uint32_t c) {
    static constexpr std::uint32_t kNot[][2] = {
        {0, 0x1f},          {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
        {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
        {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
        {0xd800, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
        {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff},
        {0xe01f0, 0x10ffff}};
    return std::none_of(std::begin(kNot), std::end(kNot),
                        [&](const auto& range) { return c >= range[0] && c <= range[1]; });
}

void add_repr_text(std::string& out, std::string_view text) {
    const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
    const char quote = single ? '\'' : '"';
    out += quote;
    for (std::size_t at = 0, n; at < text.size(); at += n) {
        n = character_bytes(text, at);
        const std::string_view one = text.substr(at, n);
        const std::uint32_t c = code_point(one);
        const std::size_t escape = n == 1 ? std::string_view("\\\n\r\t").find(one[0]) : std::string::npos;
        if (escape != std::string::npos) {
            (out += '\\') += "\\nrt"[escape];
        } else if (c == static_cast<std::uint32_t>(quote)) {
            (out += '\\') += quote;
        } else if (!is_printable(c)) {
            out += c < 0x100     ? "\\x" + hexadecimal(c, 2)
                   : c < 0x10000 ? "\\u" + hexadecimal(c, 4)
                                 : "\\U" + hexadecimal(c, 8);
        } else {
            out += one;
        }
    }
    out += quote;
}

/// Writes into one text, paying for what it adds.
class Printer {
public:
    explicit Printer(Budget& budget) : budget_(budget) {}

    void repr(const Value& value) {
        const std::size_t before = out.size();
        if (is_text(value)) {
            budget_.bytes(text_of(value).size());
            add_repr_text(out, text_of(value));
        } else if (const auto* list = std::get_if<ListPointer>(&value)) {
            repr_list(**list);
        } else if (const auto* dict = std::get_if<DictPointer>(&value)) {
            repr_dict(**dict);
        } else {
            plain(value);
        }
        pay(before);
    }

    void json(const Value& value, const JsonStyle& style, int level) {
        const std::size_t before = out.size();
        if (is_text(value)) {
            budget_.bytes(text_of(value).size());
            add_json_text(out, text_of(value), style.ensure_ascii);
        } else if (const auto* list = std::get_if<ListPointer>(&value)) {
            json_list(**list, style, level);
        } else if (const auto* dict = std::get_if<DictPointer>(&value)) {
            json_dict(**dict, style, level);
        } else if (const auto* flag = std::get_if<bool>(&value)) {
            out += *flag ? "true" : "false";
        } else if (is<None>(value)) {
            out += "null";
        } else if (const auto* real = std::get_if<double>(&value)) {
            out += real_text(*real, true);
        } else if (is_integer(value)) {
            out += std::to_string(integer_of(value));
        } else {
            fail("tojson: expected what JSON can say, got " + kind_of(value));
        }
        pay(before);
    }

    std::string out;

private:
    /// Cost added by one level. Inner levels are charged again; the depth is bounded.
    void pay(std::size_t before) {
        budget_.steps(1);
        budget_.bytes(out.size() - before);
    }

    void plain(const Value& value) {
        if (is<None>(value)) out += "None";
        if (const auto* flag = std::get_if<bool>(&value)) out += *flag ? "True" : "False";
        if (const auto* integer = std::get_if<std::int64_t>(&value)) out += std::to_string(*integer);
        if (const auto* real = std::get_if<double>(&value)) out += real_text(*real, false);
        if (is_undefined(value)) out += "Undefined";
        if (value.index() >= Value(static_cast<Namespace*>(nullptr)).index())
            out += "<" + kind_of(value).substr(2) + ">";
    }

    void repr_list(const List& list) {
        out += list.is_tuple ? '(' : '[';
        for (std::size_t i = 0; i < list.items.size(); ++i) {
            if (i) out += ", ";
            repr(list.items[i]);
        }
        if (list.is_tuple && list.items.size() == 1) out += ',';
        out += list.is_tuple ? ')' : ']';
    }

    void repr_dict(const Dict& dict) {
        out += '{';
        for (std::size_t i = 0; i < dict.entries.size(); ++i) {
            if (i) out += ", ";
            repr(dict.entries[i].first);
            out += ": ";
            repr(dict.entries[i].second);
        }
        out += '}';
    }

    void line(const JsonStyle& style, int level) {
        if (style.indent < 0) return;
        const std::size_t n = static_cast<std::size_t>(style.indent) * static_cast<std::size_t>(level);
        budget_.bytes(n + 1);
        (out += '\n').append(n, ' ');
    }

    void json_list(const List& list, const JsonStyle& style, int level) {
        out += '[';
        for (std::size_t i = 0; i < list.items.size(); ++i) {
            if (i) out += style.item_separator;
            line(style, level + 1);
            json(list.items[i], style, level + 1);
        }
        if (!list.items.empty()) line(style, level);
        out += ']';
    }

    void json_key(const Value& key, const JsonStyle& style) {
        if (is_text(key)) return add_json_text(out, text_of(key), style.ensure_ascii);
        if (!is_number(key) && !is<None>(key)) fail("tojson: expected a key that JSON has, got " + kind_of(key));
        out += '"';
        json(key, style, 0);
        out += '"';
    }

    void json_dict(const Dict& dict, const JsonStyle& style, int level) {
        std::vector<const std::pair<Value, Value>*> entries;
        for (const auto& entry : dict.entries) entries.push_back(&entry);
        if (style.sort_keys)
            std::stable_sort(entries.begin(), entries.end(),
                             [&](const auto* a, const auto* b) { return less(budget_, a->first, b->first); });
        out += '{';
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (i) out += style.item_separator;
            line(style, level + 1);
            json_key(entries[i]->first, style);
            out += style.key_separator;
            json(entries[i]->second, style, level + 1);
        }
        if (!entries.empty()) line(style, level);
        out += '}';
    }

    Budget& budget_;
};

}  // namespace

std::string to_repr(Budget& budget, const Value& value) {
    Printer printer(budget);
    printer.repr(value);
    return std::move(printer.out);
}

std::string to_text(Budget& budget, const Value& value) {
    if (is_undefined(value)) return {};
    if (is_text(value)) {
        budget.bytes(text_of(value).size());
        return text_of(value);
    }
    return to_repr(budget, value);
}

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
    Printer printer(budget);
    printer.json(value, style, 0);
    return std::move(printer.out);
}

}  // namespace fovea::chat
