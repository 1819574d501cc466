// From one word to ids: by merging symbols, or by longest match.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/format/tables.h"

namespace fovea {

/// Takes encode's ids. It counts on past the end of the caller's tokens, to say how many were wanted.
class TokenSink {
public:
    explicit TokenSink(std::span<Token> tokens) noexcept : tokens_(tokens) {}
    void put(Token id) noexcept {
        if (n_ < tokens_.size()) tokens_[static_cast<std::size_t>(n_)] = id;
        ++n_;
    }
    [[nodiscard]] std::uint64_t n() const noexcept { return n_; }
    void go_back(std::uint64_t n) noexcept { n_ = n; }
    /// The ids put after the first n; none if there was no room for all of them.
    [[nodiscard]] std::span<const Token> since(std::uint64_t n) const noexcept {
        if (overflow()) return {};
        return tokens_.subspan(static_cast<std::size_t>(n), static_cast<std::size_t>(n_ - n));
    }
    [[nodiscard]] bool overflow() const noexcept { return n_ > tokens_.size(); }

private:
    std::span<Token> tokens_;
    std::uint64_t n_ = 0;
};

/// Byte-pair encoding: neighbours are merged, the pair of lowest rank first (the leftmost of equals), until none is
/// left. O(n log n) in the word's length. False if the word has more symbols than the scratch, aligned for uint32,
/// holds. Source: Sennrich et al. 2016.
[[nodiscard]] bool put_byte_pairs(const Tables& tables, std::string_view word, std::span<std::byte> scratch,
                                  TokenSink& sink) noexcept;
inline constexpr std::size_t kBytesPerSymbol = 16;

/// Puts the longest token that `word` starts with, then the longest that the rest starts with, and so on. If a rest
/// starts with no token, or the word is too long, puts only the unknown token. A token for a word's beginning has a
/// space first, as the word has; one that continues a word has none. Time: word length × longest token. Source:
/// Schuster and Nakajima 2012; Devlin et al. 2019.
void put_word_pieces(const Tables& tables, std::string_view word, TokenSink& sink) noexcept;

}  // namespace fovea
