// A tokenizer section as checked views, and total look-ups in them: any index, any bytes, an answer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/format.h"
#include "fovea/tokenizer.h"

namespace fovea {

/// The tables of one section; empty spans where it has none. Every span lies within the section and is aligned for its
/// elements; what the elements say is not trusted.
struct Tables {
    const TokenizerHeader* header = nullptr;
    std::span<const std::uint32_t> token_offsets;
    std::span<const char> token_text;
    std::span<const std::uint32_t> end_ids, prefix_ids, suffix_ids;
    std::span<const TokenizerStep> steps;
    std::span<const std::uint32_t> byte_ids;  ///< [256] or empty
    std::span<const TokenizerMerge> merges;
    std::span<const TokenizerEntry> vocabulary;
    std::span<const AddedToken> added_tokens;
    std::span<const char> added_text;
    std::span<const std::uint32_t> classes, combining;
    std::span<const std::uint64_t> decompositions;
    std::span<const std::uint16_t> compositions;

    /// The bytes `id` stands for; empty where there is no such id.
    [[nodiscard]] std::string_view token(Token id) const noexcept;
    [[nodiscard]] bool is_special(Token id) const noexcept;
    [[nodiscard]] std::string_view spelling(const AddedToken& added) const noexcept;
    /// The id of the token that stands for `bytes`, or kNoId.
    [[nodiscard]] Token find(std::string_view bytes) const noexcept;
    /// The merge of two neighbours, or null.
    [[nodiscard]] const TokenizerMerge* merge(Token left, Token right) const noexcept;
    /// UnicodeClass bits.
    [[nodiscard]] std::uint8_t class_of(std::uint32_t code) const noexcept;
    /// Canonical combining class.
    [[nodiscard]] std::uint8_t combining_class(std::uint32_t code) const noexcept;
};

/// Finds the tables of `section`. O(n_tables). Errors, `tables` unchanged: those of open_tokenizer.
[[nodiscard]] Status read_tables(std::span<const std::byte> section, Tables& tables) noexcept;

/// The way into a Tokenizer's private view.
struct TokenizerReader {
    [[nodiscard]] static Tables tables(const Tokenizer& tokenizer) noexcept;
    static void set(Tokenizer& tokenizer, std::span<const std::byte> section) noexcept;
    [[nodiscard]] static const TokenizerHeader* header(const Tokenizer& tokenizer) noexcept { return tokenizer.header_; }
};

}  // namespace fovea
