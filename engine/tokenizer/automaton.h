// Patterns as tables of states, and tries: a section holds them for what a list of words or a few flags can't say.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/format/utf8.h"
#include "engine/tokenizer/subwords.h"

namespace fovea {

/// One pattern of the section. Finds its leftmost matches; if several start together, the one a backtracking matcher
/// would find. Made for one text: it remembers parts of its search. Linear time for the patterns that the converter
/// lets pass, in which a search waits long for its next match in few states only.
class Pattern {
public:
    /// A pattern that matches nothing if there is no such index, or its extents are not right.
    Pattern(const Tables& tables, std::uint32_t index) noexcept;

    struct Segment {
        std::size_t end = 0;
        bool is_match = false;
    };
    /// The piece that starts at `pos` < text.size(): a match, or everything up to the next match.
    [[nodiscard]] Segment segment(std::string_view text, std::size_t pos) noexcept;

    /// `text` with every match made `to`. False if there is no room.
    [[nodiscard]] bool replace(std::string_view text, std::string_view to, TextSink& out) noexcept;

private:
    /// A search in this state anywhere from `begin` to `end` finds nothing, as an earlier one found nothing.
    struct Idle {
        std::size_t begin = 0, end = 0;
        std::uint32_t state = 0;
    };
    static constexpr std::uint32_t kIdle = 4;

    /// The end of the match that starts at `pos`; `pos` if there is none.
    [[nodiscard]] std::size_t match_end(std::string_view text, std::size_t pos) noexcept;
    /// The class of the character at `pos`, which moves behind it.
    [[nodiscard]] std::uint32_t class_at(std::string_view text, std::size_t& pos) const noexcept;

    const TokenizerPattern* pattern_ = nullptr;
    std::span<const std::uint16_t> transitions_;  ///< [n_states][n_classes + 1]: the last column is the text's end
    std::span<const std::uint32_t> runs_;
    Idle idle_[kIdle];
};

/// A double array (Aoe 1989) in the units of Darts-clone, which SentencePiece's files hold too. Total: any units, any bytes.
class Trie {
public:
    explicit Trie(std::span<const std::uint32_t> units) noexcept : units_(units) {}

    /// From `node`, 0 at first, along `byte`. False if no key goes there. A leaf has the place of label 0, so a zero
    /// byte has that of 0xff, which no text in UTF-8 holds.
    [[nodiscard]] bool step(std::uint32_t& node, char byte) const noexcept {
        constexpr std::uint32_t kNever = 0xff;
        const std::uint32_t label = byte == '\0' ? kNever : static_cast<std::uint8_t>(byte);
        if (node >= units_.size() || static_cast<std::uint8_t>(byte) == kNever) return false;
        const std::uint32_t next = node ^ offset(units_[node]) ^ label;
        if (next >= units_.size() || (units_[next] & (kLeaf | 0xff)) != label) return false;
        node = next;
        return true;
    }
    /// The value of the key that ends at `node`, where step led; kNoId: none does.
    [[nodiscard]] std::uint32_t value(std::uint32_t node) const noexcept {
        const std::uint32_t unit = units_[node], leaf = node ^ offset(unit);
        if (!(unit & kHasLeaf) || leaf >= units_.size()) return kNoId;
        return units_[leaf] & ~kLeaf;
    }

private:
    static constexpr std::uint32_t kLeaf = 1u << 31, kHasLeaf = 1u << 8;
    static constexpr std::uint32_t offset(std::uint32_t unit) noexcept {
        return (unit >> 10) << ((unit & (1u << 9)) >> 6);
    }
    std::span<const std::uint32_t> units_;
};

/// Writes `text` as mapped by the map that `step` names. False if there is no room.
[[nodiscard]] bool map_characters(const Tables& tables, const TokenizerStep& step, std::string_view text,
                                  TextSink& out) noexcept;

/// The pieces of `word` whose scores have the largest sum; characters that no piece spells score the section's last
/// score each, and become bytes, or the unknown token, one for each run of them. False if the scratch is short.
/// Time: word length × longest piece. Source: Kudo 2018; Viterbi 1967.
[[nodiscard]] bool put_unigram(const Tables& tables, std::string_view word, std::span<std::byte> scratch,
                               TokenSink& sink) noexcept;
/// Bytes of scratch for the sums that a piece may reach back to. Besides, each byte of a word takes two.
[[nodiscard]] constexpr std::uint64_t unigram_window_bytes(std::uint32_t max_token_bytes) noexcept {
    return (std::uint64_t{max_token_bytes} + 5) * sizeof(double);
}

}  // namespace fovea
