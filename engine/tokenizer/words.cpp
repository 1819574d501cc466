#include "engine/tokenizer/text.h"

namespace fovea {
namespace {

constexpr std::uint32_t kLongS = 0x17f;  // ſ, the only character beyond ASCII that folds to a letter of a contraction
constexpr std::uint8_t kVisible = kLetter | kNumber | kSpace;  // without one of them: punctuation

bool is_line_end(std::uint32_t code) noexcept { return code == '\n' || code == '\r'; }

/// `code` as the small letter a contraction may have; with `fold` in either case.
std::uint32_t contraction_letter(std::uint32_t code, bool fold) noexcept {
    if (!fold) return code;
    if (code >= 'A' && code <= 'Z') return code + ('a' - 'A');
    return code == kLongS ? 's' : code;
}

/// The end of the contraction that starts with the apostrophe at `pos`; `pos` where there is none.
std::size_t contraction_end(const Classes& classes, std::string_view text, std::size_t pos, bool fold) noexcept {
    const auto first = classes.at(text, pos + 1);
    const std::size_t after_first = pos + 1 + first.bytes;
    const std::uint32_t a = contraction_letter(first.code, fold);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return after_first;
    const auto second = classes.at(text, after_first);
    const std::uint32_t b = contraction_letter(second.code, fold);
    if ((b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l')) return after_first + second.bytes;
    return pos;
}

std::size_t line_ends_end(std::string_view text, std::size_t pos) noexcept {
    while (pos < text.size() && is_line_end(static_cast<std::uint8_t>(text[pos]))) ++pos;
    return pos;
}

std::size_t numbers_end(const Classes& classes, std::string_view text, std::size_t pos, std::uint32_t limit) noexcept {
    if (limit == 0) return classes.run_end(text, pos, kNumber);
    for (std::uint32_t i = 0; i < limit; ++i) {
        const auto c = classes.at(text, pos);
        if (!(c.bits & kNumber)) break;
        pos += c.bytes;
    }
    return pos;
}

/// `pos` is at space that no other part of the pattern takes.
std::size_t space_end(const Classes& classes, std::string_view text, std::size_t pos, bool line_ends) noexcept {
    std::size_t last_line_end = pos, last = pos, end = pos;
    for (auto c = classes.at(text, end); c.bits & kSpace; c = classes.at(text, end)) {
        last = end;
        end += c.bytes;
        if (is_line_end(c.code)) last_line_end = end;
    }
    if (line_ends && last_line_end != pos) return last_line_end;
    // Before a visible character the last space is left to go with it.
    return end == text.size() || last == pos ? end : last;
}

}  // namespace

std::size_t word_end(const Classes& classes, const TokenizerStep& step, std::string_view text,
                     std::size_t pos) noexcept {
    const bool line_ends = step.mode & kLineEnds;
    const auto c = classes.at(text, pos);
    if (c.code == '\'') {
        const std::size_t end = contraction_end(classes, text, pos, step.mode & kIgnoreCase);
        if (end != pos) return end;
    }
    if (c.bits & kLetter) return classes.run_end(text, pos, kLetter);
    if (c.bits & kNumber) return numbers_end(classes, text, pos, step.limit);
    const std::size_t after = pos + c.bytes;
    const auto next = classes.at(text, after);
    const bool is_space = c.code == ' ';
    if ((next.bits & kLetter) && (step.mode & kAnyPrefix ? !is_line_end(c.code) : is_space))
        return classes.run_end(text, after, kLetter);
    if (is_space && (next.bits & kNumber) && step.limit == 0) return numbers_end(classes, text, after, 0);
    if (!(c.bits & kSpace) || (is_space && next.bytes && !(next.bits & kVisible))) {
        const std::size_t end = classes.run_end(text, after, kVisible, true);
        return line_ends ? line_ends_end(text, end) : end;
    }
    return space_end(classes, text, pos, line_ends);
}

}  // namespace fovea
