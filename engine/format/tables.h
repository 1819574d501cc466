// A tokenizer section as checked views, and total look-ups in them: any index, any bytes, an answer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/format/format.h"
#include "fovea/tokenizer.h"

namespace fovea {

/// The first of n places whose key is not below `key`, if keys ascend; if they do not, some place up to n.
template<class KeyAt>
[[nodiscard]] constexpr std::size_t first_place(std::size_t n, std::uint64_t key, KeyAt key_at) noexcept {
    std::size_t first = 0;
    while (n > 0) {
        const std::size_t half = n / 2;
        const bool below = key_at(first + half) < key;
        first += below ? half + 1 : 0;
        n = below ? n - half - 1 : half;
    }
    return first;
}

/// The value that holds at `code` in ascending runs, first code point << 8 | value; 0 before the first.
[[nodiscard]] constexpr std::uint8_t value_at(std::span<const std::uint32_t> runs, std::uint32_t code) noexcept {
    const std::size_t next = first_place(runs.size(), code + 1, [&](std::size_t i) { return runs[i] >> 8; });
    return next == 0 ? 0 : static_cast<std::uint8_t>(runs[next - 1]);
}

/// A character's replacement: an entry of decompositions or lower_case.
struct Change {
    std::uint64_t entry = 0;  ///< 0: there is none
    static constexpr std::uint32_t kCodeBits = 21, kCodeMask = (1u << kCodeBits) - 1;

    [[nodiscard]] constexpr std::uint32_t part(std::uint32_t i) const noexcept {
        return static_cast<std::uint32_t>(entry >> i * kCodeBits) & kCodeMask;
    }
    [[nodiscard]] constexpr std::uint32_t code() const noexcept { return part(0); }
    [[nodiscard]] constexpr std::uint32_t first() const noexcept { return part(1); }
    [[nodiscard]] constexpr std::uint32_t second() const noexcept { return part(2); }  ///< 0: one is all
    [[nodiscard]] constexpr bool composes() const noexcept { return entry >> 63; }
};
[[nodiscard]] constexpr Change change_of(std::span<const std::uint64_t> entries, std::uint32_t code) noexcept {
    const std::size_t i = first_place(entries.size(), code, [&](std::size_t k) { return Change{entries[k]}.code(); });
    return i < entries.size() && Change{entries[i]}.code() == code ? Change{entries[i]} : Change{};
}

/// The tables of one section; empty spans if it has none. Every span lies within the section and is aligned for its
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
    std::span<const std::uint32_t> classes, combining, characters;
    std::span<const std::uint64_t> decompositions, lower_case;
    std::span<const std::uint16_t> compositions;
    std::span<const TokenizerPattern> patterns;
    std::span<const std::uint32_t> pattern_runs;
    std::span<const std::uint16_t> transitions;
    std::span<const TokenizerMap> maps;
    std::span<const std::uint32_t> map_units;
    std::span<const char> map_text;
    std::span<const std::uint32_t> clusters;
    std::span<const std::uint32_t> pieces;  ///< a trie of what tokens are spelled like, to their ids
    std::span<const double> scores;         ///< [n_tokens + 1]: the last is an unknown character's
    std::span<const TokenizerPart> pair;

    /// Where token i < token_offsets.size() starts in token_text, by the file's word.
    [[nodiscard]] std::uint32_t offset(std::size_t i) const noexcept {
        return token_offsets[i] & ~(kSpecialToken | kJoinedToken);
    }
    /// The bytes `id` stands for; empty if there is no such id.
    [[nodiscard]] std::string_view token(Token id) const noexcept;
    [[nodiscard]] bool has_bit(Token id, std::uint32_t offset_bit) const noexcept {
        return std::uint64_t{id} + 1 < token_offsets.size() && (token_offsets[id] & offset_bit) != 0;
    }
    [[nodiscard]] TokenizerModel model() const noexcept { return static_cast<TokenizerModel>(header->model); }
    [[nodiscard]] bool is_word_piece() const noexcept { return model() == TokenizerModel::word_piece; }
    [[nodiscard]] std::string_view spelling(const AddedToken& added) const noexcept;
    /// The id of the token that stands for `bytes`, whose hash_bytes is `hash`, or kNoId.
    [[nodiscard]] Token find(std::string_view bytes, std::uint32_t hash) const noexcept;
    [[nodiscard]] Token find(std::string_view bytes) const noexcept {
        return find(bytes, hash_bytes(bytes.data(), bytes.size()));
    }
    /// The merge of two neighbours, or null.
    [[nodiscard]] const TokenizerMerge* merge(Token left, Token right) const noexcept;
};

/// Finds the tables of `section`. O(n_tables). Errors, `tables` unchanged: those of open_tokenizer.
[[nodiscard]] Status read_tables(std::span<const std::byte> section, Tables& tables) noexcept;

/// The way into a Tokenizer's private view.
struct TokenizerReader {
    [[nodiscard]] static Tables tables(const Tokenizer& tokenizer) noexcept;
    static void set(Tokenizer& tokenizer, std::span<const std::byte> section) noexcept;
    [[nodiscard]] static const TokenizerHeader* header(const Tokenizer& tokenizer) noexcept {
        return tokenizer.header_;
    }
};

}  // namespace fovea
