// The text of a grammar, read character by character.
#pragma once
#include <string>
#include <string_view>

#include "engine/format/utf8.h"
#include "host/base/ascii.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {

/// Expressions within expressions; what reads them goes as deep itself.
inline constexpr std::uint32_t kMostNesting = 200;

/// A text with the place that is read. Errors name the line and column.
class SourceText {
public:
    SourceText(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

    [[nodiscard]] bool done() const { return at_ == text_.size(); }
    /// The next byte, 0 at the end.
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return ahead < text_.size() - at_ ? text_[at_ + ahead] : '\0';
    }
    [[nodiscard]] bool starts_with(std::string_view what) const { return text_.substr(at_).starts_with(what); }
    void skip(std::size_t n) { at_ += n; }
    bool take(std::string_view what) {
        if (!starts_with(what)) return false;
        at_ += what.size();
        return true;
    }
    void expect(std::string_view what) {
        if (!take(what)) fail(std::string(what));
    }
    /// The next character's code point.
    std::uint32_t character() {
        if (done()) fail("a character");
        const Character c = first_character(text_.substr(at_));
        if (c.code == kNotACharacter) fail("UTF-8");
        at_ += c.bytes;
        return c.code;
    }
    /// n hexadecimal digits.
    std::uint32_t hex(std::uint32_t n) {
        std::uint32_t value = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            const int digit = hex_value(peek());
            if (digit < 0) fail(std::to_string(n) + " hexadecimal digits");
            value = value << 4 | static_cast<std::uint32_t>(digit);
            ++at_;
        }
        return value;
    }
    /// A whole number, at most ten million.
    std::uint32_t number() {
        if (!is_digit(peek())) fail("a number");
        std::uint64_t value = 0;
        while (is_digit(peek())) {
            value = value * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
            if (value > 10'000'000) fail("a number up to 10000000");
        }
        return static_cast<std::uint32_t>(value);
    }
    [[nodiscard]] std::size_t place() const { return at_; }
    void go_back(std::size_t place) { at_ = place; }

    /// Throws "NAME, line 3, column 7: expected WANTED, got ...".
    [[noreturn]] void fail(const std::string& wanted) const {
        std::size_t line = 1, start = 0;
        for (std::size_t i = 0; i < at_; ++i)
            if (text_[i] == '\n') {
                ++line;
                start = i + 1;
            }
        std::string got = "the end";
        if (!done()) {
            const Character c = first_character(text_.substr(at_));
            got = text_[at_] == '\n'         ? "a line end"
                  : c.code == kNotACharacter ? "a byte that is none"
                                             : std::string(text_.substr(at_, c.bytes));
        }
        throw GrammarError(name_ + (start || line > 1 ? ", line " + std::to_string(line) : "") + ", column " +
                           std::to_string(at_ - start + 1) + ": expected " + wanted + ", got " + got);
    }

private:
    std::string_view text_;
    std::string name_;
    std::size_t at_ = 0;
};

}  // namespace fovea::grammar
