// Byte-pair encoding of one word, in memory that was given.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/tokenizer/tables.h"

namespace fovea {

/// Where encode's ids go: counts on past the end of the caller's tokens, so that it can say how many were wanted.
class TokenSink {
public:
    explicit TokenSink(std::span<Token> tokens) noexcept : tokens_(tokens) {}
    void put(Token id) noexcept {
        if (n_ < tokens_.size()) tokens_[n_] = id;
        ++n_;
    }
    [[nodiscard]] std::uint64_t n() const noexcept { return n_; }
    void go_back(std::uint64_t n) noexcept { n_ = n; }
    [[nodiscard]] bool overflow() const noexcept { return n_ > tokens_.size(); }

private:
    std::span<Token> tokens_;
    std::uint64_t n_ = 0;
};

/// Words to ids: neighbours are merged, the pair of lowest rank first, of equals the leftmost, until none is left.
/// O(n log n) in the word's length. Source: Sennrich et al. 2016.
class Bpe {
public:
    static constexpr std::size_t kBytesPerSymbol = 16;

    /// `scratch` is aligned for uint32 and holds kBytesPerSymbol for every symbol of the longest word.
    Bpe(const Tables& tables, std::span<std::byte> scratch) noexcept;

    /// False where the word has more symbols than the scratch holds.
    [[nodiscard]] bool encode(std::string_view word, TokenSink& sink) noexcept;

private:
    [[nodiscard]] bool make_symbols(std::string_view word) noexcept;
    [[nodiscard]] bool add_symbol(Token id) noexcept;
    [[nodiscard]] bool add_unknown(std::string_view character) noexcept;
    void rank_pair(std::uint32_t left) noexcept;
    [[nodiscard]] bool merge_at(std::uint32_t left) noexcept;
    void merge_all() noexcept;
    void play_all() noexcept;
    void replay(std::uint32_t symbol) noexcept;
    [[nodiscard]] std::uint32_t better(std::uint32_t a, std::uint32_t b) const noexcept;

    const Tables& tables_;
    // A symbol is known by the place of its first part, 0 <= place < n_. A merged symbol spans several places: link_ of
    // its first holds the last and link_ of its last the first, so both neighbours are found without a list.
    std::uint32_t* id_;
    std::uint32_t* link_;
    std::uint32_t* rank_;    // of the symbol with the one after it; kNoId: they do not merge
    std::uint32_t* winner_;  // [1 .. n_): a tournament; node i has children 2i, 2i + 1, and node n_ + k is place k
    std::uint32_t n_ = 0;
    std::uint32_t capacity_;
    bool unknown_pending_ = false;
};

}  // namespace fovea
