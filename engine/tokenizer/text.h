// Classes of a text's characters, ends of its words, and its normal forms, by the tables of a tokenizer section.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/format/tables.h"
#include "engine/format/utf8.h"

namespace fovea {

/// A table's bits of a text's characters, UnicodeClass or CharacterBit; ASCII's are kept at hand. Bytes that are no
/// UTF-8 have none.
class Classes {
public:
    explicit Classes(std::span<const std::uint32_t> runs) noexcept : runs_(runs) {
        for (std::uint32_t code = 0; code < ascii_.size(); ++code) ascii_[code] = value_at(runs, code);
    }

    struct Classified {
        std::uint32_t code = kNotACharacter;
        std::uint32_t bytes = 0;  ///< 0: the text's end
        std::uint8_t bits = 0;
    };
    /// The character at `pos` of `text`.
    [[nodiscard]] Classified at(std::string_view text, std::size_t pos) const noexcept {
        if (pos >= text.size()) return {};
        const auto byte = static_cast<std::uint8_t>(text[pos]);
        if (byte < 128) return {byte, 1, ascii_[byte]};
        const Character c = first_character(tail(text, pos));
        return {c.code, c.bytes, of(c)};
    }
    [[nodiscard]] std::uint8_t of(const Character& c) const noexcept {
        if (c.code == kNotACharacter) return 0;
        return c.code < ascii_.size() ? ascii_[c.code] : value_at(runs_, c.code);
    }
    /// The end of the run of characters that have a bit of `bits` or, with `others`, none of them.
    [[nodiscard]] std::size_t run_end(std::string_view text, std::size_t pos, std::uint8_t bits,
                                      bool others = false) const noexcept {
        for (auto c = at(text, pos); c.bytes && ((c.bits & bits) == 0) == others; c = at(text, pos)) pos += c.bytes;
        return pos;
    }

private:
    std::span<const std::uint32_t> runs_;
    std::array<std::uint8_t, 128> ascii_{};
};

/// The end of the word that starts at `pos` < text.size(): the first match of
///
///     '(s|t|re|ve|m|ll|d) | P?L+ | N{1,limit} (limit 0: " "?N+) | " "?O+E | \s*[\r\n]+ (with kLineEnds)
///     | \s+(?!\S) | \s+
///
/// with L, N letters and numbers, O what is neither nor space, P one space or, with kAnyPrefix, any one character that
/// is no letter, number or line end, and E nothing or, with kLineEnds, [\r\n]*.
/// Source: the patterns of GPT-2 (Radford et al. 2019), Llama 3 and Qwen 2, as their tokenizer.json spell them.
[[nodiscard]] std::size_t word_end(const Classes& classes, const TokenizerStep& step, std::string_view text,
                                   std::size_t pos) noexcept;

/// Modes of StepKind::normal_form: C, D without nonspacing marks, D.
enum class NormalForm : std::uint8_t { c = 0, stripped = 1, d = 2 };

/// Writes `text` to `out` in that form. False if there is no room: three times the text always does. Bytes that are no
/// UTF-8 pass through, and part the texts on their two sides. Linear time. Source: Unicode Standard Annex 15; Unicode
/// Standard, section 3.11 (canonical ordering, composition), 3.12 (Hangul).
[[nodiscard]] bool normalize(const Tables& tables, NormalForm form, std::string_view text, TextSink& out) noexcept;

}  // namespace fovea
