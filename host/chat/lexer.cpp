#include "host/chat/lexer.h"

#include <algorithm>

#include "engine/format/utf8.h"
#include "host/base/ascii.h"
#include "host/chat/chat_template.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

bool begins_name(char c) { return is_letter(c) || c == '_' || (c & 0x80); }
bool in_name(char c) { return begins_name(c) || is_digit(c); }
bool is_hexadecimal(char c) { return hex_value(c) >= 0; }

std::string with_plain_line_ends(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\r') {
            out += text[i];
        } else {
            out += '\n';
            if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
        }
    }
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

/// White space at the front of a text, in bytes.
std::size_t spaces(std::string_view text) { return text.size() - strip(text, Side::left).size(); }

class Lexer {
public:
    explicit Lexer(std::string_view text) : source_(with_plain_line_ends(text)), text_(source_) {}

    std::vector<Token> run() {
        while (at_ < text_.size()) {
            const std::size_t tag = next_tag();
            if (tag == text_.npos) {
                add_data(text_.substr(at_));
                break;
            }
            read_tag(tag);
        }
        add(TokenKind::end, "");
        return std::move(tokens_);
    }

private:
    [[noreturn]] void refuse(const std::string& what) const {
        throw ChatTemplateError("line " + std::to_string(line_) + ": " + what);
    }

    void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

    void move_to(std::size_t at) {
        line_ += static_cast<std::uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                       text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
        at_ = at;
    }

    void add_data(std::string_view data) {
        if (!data.empty()) add(TokenKind::data, std::string(data));
    }

    [[nodiscard]] std::size_t next_tag() const {
        for (std::size_t at = text_.find('{', at_); at != text_.npos; at = text_.find('{', at + 1))
            if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#'))
                return at;
        return text_.npos;
    }

    [[nodiscard]] char sign_at(std::size_t at) const {
        return at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at] : '\0';
    }

    /// The data before a tag, as the tag's sign and lstrip_blocks leave it.
    [[nodiscard]] std::string_view before_tag(std::string_view data, char sign, bool prints) const {
        if (sign == '-') return strip(data, Side::right);
        if (sign == '+' || prints) return data;
        const std::size_t line = data.rfind('\n') + 1;
        if (line == 0 && !line_begins_) return data;
        return spaces(data.substr(line)) == data.size() - line ? data.substr(0, line) : data;
    }

    /// Goes behind a tag's end, which begins at `at` with its sign, and behind the space trimmed after it.
    void leave_tag(std::size_t at, bool prints) {
        const char sign = sign_at(at);
        std::size_t end = at + (sign ? 1 : 0) + 2;
        if (sign == '-') {
            end += spaces(text_.substr(end));
        } else if (sign != '+' && !prints && end < text_.size() && text_[end] == '\n') {
            ++end;
        }
        line_begins_ = text_[end - 1] == '\n';
        move_to(end);
    }

    void read_tag(std::size_t tag) {
        const char kind = text_[tag + 1], sign = sign_at(tag + 2);
        add_data(before_tag(text_.substr(at_, tag - at_), sign, kind == '{'));
        move_to(tag + 2 + (sign ? 1 : 0));
        if (kind == '#') return read_comment();
        if (kind == '%' && read_raw()) return;
        add(kind == '{' ? TokenKind::print_begin : TokenKind::block_begin, "");
        read_inside(kind == '{' ? "}}" : "%}");
    }

    void read_comment() {
        const std::size_t end = text_.find("#}", at_);
        if (end == text_.npos) refuse("comment: expected #} after it, got none");
        const bool has_sign = end > at_ && sign_at(end - 1);
        leave_tag(end - (has_sign ? 1 : 0), false);
    }

    /// Whether the block that begins here says `word` and nothing else; then where its end is.
    [[nodiscard]] bool is_block(std::size_t at, std::string_view word, std::size_t& end) const {
        at += spaces(text_.substr(at));
        if (text_.substr(at, word.size()) != word) return false;
        at += word.size();
        at += spaces(text_.substr(at));
        end = at;
        return text_.substr(at + (sign_at(at) ? 1 : 0), 2) == "%}";
    }

    bool read_raw() {
        std::size_t end = 0;
        if (!is_block(at_, "raw", end) || sign_at(end) == '+') return false;
        std::size_t begin = end + (sign_at(end) ? 3 : 2);
        if (sign_at(end)) begin += spaces(text_.substr(begin));
        line_begins_ = text_[begin - 1] == '\n';
        move_to(begin);
        for (std::size_t tag = text_.find("{%", at_); tag != text_.npos; tag = text_.find("{%", tag + 2)) {
            const char sign = sign_at(tag + 2);
            if (!is_block(tag + 2 + (sign ? 1 : 0), "endraw", end)) continue;
            add_data(before_tag(text_.substr(at_, tag - at_), sign, false));
            leave_tag(end, false);
            return true;
        }
        refuse("raw: expected endraw after it, got none");
    }

    /// Reads the inside of a tag, to its end. Closing braces of objects do not end it.
    void read_inside(std::string_view end) {
        std::string open;
        for (;;) {
            move_to(at_ + spaces(text_.substr(at_)));
            if (at_ >= text_.size()) refuse("tag: expected " + std::string(end) + ", got the template's end");
            const bool prints = end == "}}";
            const std::size_t sign = sign_at(at_) == '-' || (!prints && sign_at(at_) == '+') ? 1 : 0;
            if (open.empty() && text_.substr(at_ + sign, 2) == end) break;
            read_token(open);
        }
        add(end == "}}" ? TokenKind::print_end : TokenKind::block_end, "");
        leave_tag(at_, end == "}}");
    }

    void read_token(std::string& open) {
        const char c = text_[at_];
        if (c == '"' || c == '\'') return read_text(c);
        if (is_digit(c)) return read_number();
        if (begins_name(c)) {
            const std::size_t end = next_not(in_name);
            add(TokenKind::name, std::string(text_.substr(at_, end - at_)));
            return move_to(end);
        }
        static constexpr std::string_view kLong[] = {"==", "!=", "<=", ">=", "//", "**"};
        for (const std::string_view sign : kLong)
            if (text_.substr(at_, 2) == sign) return add_sign(sign);
        if (std::string_view("+-*/%~<>=()[]{}.,:|;").find(c) == std::string_view::npos)
            refuse("expected an expression, got the character " +
                   std::string(text_.substr(at_, first_character(text_.substr(at_)).bytes)));
        match_bracket(c, open);
        add_sign(text_.substr(at_, 1));
    }

    void match_bracket(char c, std::string& open) {
        if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
        if (c != ')' && c != ']' && c != '}') return;
        if (open.empty() || open.back() != c)
            refuse(std::string("brackets: expected ") +
                   (open.empty() ? "none to close" : open.substr(open.size() - 1)) + ", got " + c);
        open.pop_back();
    }

    void add_sign(std::string_view sign) {
        add(TokenKind::sign, std::string(sign));
        at_ += sign.size();
    }

    [[nodiscard]] std::size_t next_not(bool (*belongs)(char)) const {
        std::size_t end = at_;
        while (end < text_.size() && belongs(text_[end])) ++end;
        return end;
    }

    void read_number() {
        const std::size_t begin = at_;
        std::size_t end = at_;
        const auto digits = [&] {
            while (end < text_.size() &&
                   (is_digit(text_[end]) || (text_[end] == '_' && end + 1 < text_.size() && is_digit(text_[end + 1]))))
                ++end;
        };
        digits();
        bool real = false;
        const bool is_index = begin && text_[begin - 1] == '.';  // x.0.1
        if (!is_index && end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
            real = true;
            ++end;
            digits();
        }
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            const std::size_t sign = sign_at(end + 1) ? 1 : 0;
            if (end + 1 + sign < text_.size() && is_digit(text_[end + 1 + sign])) {
                real = true;
                end += 1 + sign;
                digits();
            }
        }
        std::string number(text_.substr(begin, end - begin));
        std::erase(number, '_');
        add(real ? TokenKind::real : TokenKind::integer, std::move(number));
        at_ = end;
    }

    void read_text(char quote) {
        std::string text;
        std::size_t at = at_ + 1;
        while (at < text_.size() && text_[at] != quote) {
            if (text_[at] != '\\') {
                text += text_[at++];
            } else {
                if (at + 1 >= text_.size()) break;
                at = read_escape(at + 1, text);
            }
        }
        if (at >= text_.size()) refuse("text: expected a quotation mark after it, got the template's end");
        add(TokenKind::text, std::move(text));
        move_to(at + 1);
    }

    /// Reads the escape after a backslash, at `at`; returns its end. An unknown escape stays as it is, with its
    /// backslash.
    [[nodiscard]] std::size_t read_escape(std::size_t at, std::string& text) const {
        static constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
        const char c = text_[at];
        if (c == '\n') return at + 1;
        if (const std::size_t i = kLetters.find(c); i != kLetters.npos) {
            text += kMeanings[i];
            return at + 1;
        }
        const std::size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        const std::string_view digits = text_.substr(at + 1, n_digits);
        if (n_digits && digits.size() == n_digits && std::all_of(digits.begin(), digits.end(), is_hexadecimal)) {
            const unsigned long value = std::stoul(std::string(digits), nullptr, 16);
            if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
                refuse("text: expected a character after \\" + std::string(1, c) + ", got " + std::string(digits));
            text += encode(static_cast<std::uint32_t>(value));
            return at + 1 + n_digits;
        }
        if (n_digits) refuse("text: expected " + std::to_string(n_digits) + " hexadecimal digits after \\" + c);
        std::size_t end = at;  // up to three octal digits
        unsigned value = 0;
        while (end < text_.size() && end < at + 3 && text_[end] >= '0' && text_[end] <= '7')
            value = value * 8 + static_cast<unsigned>(text_[end++] - '0');
        if (end > at) {
            text += encode(value);
            return end;
        }
        text += '\\';
        return at;
    }

    std::string source_;
    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    bool line_begins_ = true;  ///< what stands at at_ follows a line break or nothing
};

}  // namespace

std::vector<Token> read_tokens(std::string_view text) { return Lexer(text).run(); }

}  // namespace fovea::chat
