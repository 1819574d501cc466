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
    while (!text.empty()) {
        const std::string_view one = take_character(text);
        const std::uint32_t c = code_point(one);
        const std::size_t escape = kPlain.find(one);
        if (escape != kPlain.npos) {
            (out += '\\') += kShort[escape];
        } else if (c < 0x20 || (ascii && c >= 0x80)) {
            add_utf16(out, c);
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
    while (!text.empty()) {
        const std::string_view one = take_character(text);
        const std::uint32_t c = code_point(one);
        const std::size_t escape = std::string_view("\\\n\r\t").find(one);
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

    /// `style` for JSON; null: repr.
    void print(const Value& value, const JsonStyle* style, int level = 0) {
        const std::size_t before = out_.size();
        if (is_text(value)) {
            budget_.bytes(text_of(value).size());
            add_text(value, style);
        } else if (const auto* list = std::get_if<ListPointer>(&value)) {
            print_list(**list, style, level);
        } else if (const auto* dict = std::get_if<DictPointer>(&value)) {
            print_dict(**dict, style, level);
        } else {
            print_plain(value, style != nullptr);
        }
        // Cost added by one level. Inner levels are charged again; the depth is bounded.
        budget_.steps(1);
        budget_.bytes(out_.size() - before);
    }

    [[nodiscard]] TaintedText take() { return {std::move(out_), is_data_}; }

private:
    void add_text(const Value& value, const JsonStyle* style) {
        const TaintedText& text = tainted_of(value);
        is_data_ = is_data_ || !text.data().empty();
        style ? add_json_text(out_, text.text(), style->ensure_ascii) : add_repr_text(out_, text.text());
    }

    void print_plain(const Value& value, bool json) {
        if (const auto* real = std::get_if<double>(&value)) {
            out_ += real_text(*real, json);
        } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
            out_ += std::to_string(*integer);
        } else if (const auto* flag = std::get_if<bool>(&value)) {
            out_ += *flag ? (json ? "true" : "True") : (json ? "false" : "False");
        } else if (is<None>(value)) {
            out_ += json ? "null" : "None";
        } else if (json) {
            fail("tojson: expected what JSON can say, got " + kind_of(value));
        } else {
            out_ += is_undefined(value) ? "Undefined" : "<" + kind_of(value).substr(2) + ">";
        }
    }

    /// Items between brackets, each written by print_item(i).
    void print_items(std::size_t n, const char* brackets, const JsonStyle* style, int level, const auto& print_item) {
        out_ += brackets[0];
        for (std::size_t i = 0; i < n; ++i) {
            if (i) out_ += style ? style->item_separator : ", ";
            break_line(style, level + 1);
            print_item(i);
        }
        if (n) break_line(style, level);
        out_ += brackets[1];
    }

    void break_line(const JsonStyle* style, int level) {
        if (!style || style->indent < 0) return;
        const std::size_t n = static_cast<std::size_t>(style->indent) * static_cast<std::size_t>(level);
        budget_.bytes(n + 1);
        (out_ += '\n').append(n, ' ');
    }

    void print_list(const List& list, const JsonStyle* style, int level) {
        const bool is_tuple = !style && list.is_tuple;
        print_items(list.items.size(), is_tuple ? "()" : "[]", style, level, [&](std::size_t i) {
            print(list.items[i], style, level + 1);
            if (is_tuple && list.items.size() == 1) out_ += ',';
        });
    }

    void print_key(const Value& key, const JsonStyle* style) {
        if (!style) return print(key, style);
        if (is_text(key)) return add_text(key, style);
        if (!is_number(key) && !is<None>(key)) fail("tojson: expected a key that JSON has, got " + kind_of(key));
        out_ += '"';
        print(key, style);
        out_ += '"';
    }

    void print_dict(const Dict& dict, const JsonStyle* style, int level) {
        std::vector<const std::pair<Value, Value>*> entries;
        for (const auto& entry : dict.entries) entries.push_back(&entry);
        if (style && style->sort_keys)
            std::stable_sort(entries.begin(), entries.end(),
                             [&](const auto* a, const auto* b) { return less(budget_, a->first, b->first); });
        print_items(entries.size(), "{}", style, level, [&](std::size_t i) {
            print_key(entries[i]->first, style);
            out_ += style ? style->key_separator : ": ";
            print(entries[i]->second, style, level + 1);
        });
    }

    Budget& budget_;
    std::string out_;
    bool is_data_ = false;
};

}  // namespace

TaintedText to_repr(Budget& budget, const Value& value) {
    Printer printer(budget);
    printer.print(value, nullptr);
    return printer.take();
}

TaintedText to_text(Budget& budget, const Value& value) {
    if (is_undefined(value)) return {};
    if (is_text(value)) {
        budget.bytes(text_of(value).size());
        return tainted_of(value);
    }
    return to_repr(budget, value);
}

TaintedText to_json(Budget& budget, const Value& value, const JsonStyle& style) {
    Printer printer(budget);
    printer.print(value, &style);
    return printer.take();
}

}  // namespace fovea::chat
