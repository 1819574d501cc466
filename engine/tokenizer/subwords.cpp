#include "engine/tokenizer/subwords.h"

#include <cstring>
#include "engine/format/parts.h"
#include "engine/format/utf8.h"

namespace fovea {
namespace {

/// The symbols of one word. A symbol is known by the place of its first part, 0 <= place < n_. A merged symbol spans
/// several places: link_ of its first holds the last and link_ of its last the first, so both neighbours are found
/// without a list.
class Symbols {
public:
    Symbols(const Tables& tables, std::span<std::byte> scratch) noexcept
        : tables_(tables),
          capacity_(static_cast<std::uint32_t>(scratch.size() / kBytesPerSymbol)),
          id_(reinterpret_cast<std::uint32_t*>(scratch.data())),
          link_(id_ + capacity_),
          rank_(link_ + capacity_),
          winner_(rank_ + capacity_) {}

    /// False if the word has more symbols than there is room for.
    [[nodiscard]] bool read(std::string_view word) noexcept {
        const bool bytes = tables_.header->flags & kSymbolsAreBytes;
        while (!word.empty()) {
            const std::string_view symbol{word.data(), bytes ? 1 : first_character(word).bytes};
            word.remove_prefix(symbol.size());
            const Token id = bytes ? byte_id(symbol[0]) : tables_.find(symbol);
            if (id == kNoId ? !add_unknown(symbol) : !add_pending() || !add(id)) return false;
        }
        return add_pending();
    }

    void merge_all() noexcept {
        if (n_ < 2) return;
        if (has(Part::known_sets) && n_ <= kFew) return merge_few();
        for (std::uint32_t i = 0; i < n_; ++i) rank(i);
        for (std::uint32_t node = n_ - 1; node > 0; --node) play(node);
        for (std::uint32_t best = winner_[1]; rank_[best] != kNoId; best = winner_[1]) {
            const TokenizerMerge* merge = merge_of(best);
            if (!merge) return;
            const std::uint32_t right = link_[best] + 1, last = link_[right];
            id_[best] = merge->merged;
            link_[best] = last;
            link_[last] = best;
            rank_[right] = kNoId;
            rank(best);
            replay(best);
            replay(right);
            if (best == 0) continue;
            const std::uint32_t before = link_[best - 1];
            rank(before);
            replay(before);
        }
    }

    void put(TokenSink& sink) const noexcept {
        for (std::uint32_t i = 0; i < n_; i = link_[i] + 1) sink.put(id_[i]);
    }

private:
    [[nodiscard]] Token byte_id(char byte) const noexcept {
        return tables_.byte_ids.empty() ? kNoId : tables_.byte_ids[static_cast<std::uint8_t>(byte)];
    }

    [[nodiscard]] bool add(Token id) noexcept {
        if (n_ == capacity_) return false;
        id_[n_] = id;
        link_[n_] = n_;
        ++n_;
        return true;
    }

    /// Bytes if there is a token for each, else the unknown token if there is one, else nothing. An unknown token is
    /// only added when the next known character comes; bytes of other characters overtake it, as in the `tokenizers`
    /// package.
    [[nodiscard]] bool add_unknown(std::string_view character) noexcept {
        bool all = tables_.header->flags & kByteFallback;
        for (const char c : character) all = all && byte_id(c) != kNoId;
        if (all) {
            for (const char c : character)
                if (!add(byte_id(c))) return false;
            return true;
        }
        if (tables_.header->unknown == kNoId) return true;
        if (!(tables_.header->flags & kFuseUnknown) && !add_pending()) return false;
        unknown_pending_ = true;
        return true;
    }
    [[nodiscard]] bool add_pending() noexcept {
        const bool pending = unknown_pending_;
        unknown_pending_ = false;
        return !pending || add(tables_.header->unknown);
    }

    /// The merge of the symbol with the one after it, or null.
    [[nodiscard]] const TokenizerMerge* merge_of(std::uint32_t left) const noexcept {
        const std::uint32_t right = link_[left] + 1;
        return right < n_ ? tables_.merge(id_[left], id_[right]) : nullptr;
    }
    void rank(std::uint32_t left) noexcept {
        const TokenizerMerge* merge = merge_of(left);
        rank_[left] = merge ? merge->rank : kNoId;
    }

    /// Symbols stay side by side, and the lowest rank is found by looking at all: faster than a tournament if they are few.
    void merge_few() noexcept {
        std::uint32_t* const merged = winner_;
        const auto look = [&](std::uint32_t left) {
            const TokenizerMerge* merge = left + 1 < n_ ? tables_.merge(id_[left], id_[left + 1]) : nullptr;
            rank_[left] = merge ? merge->rank : kNoId;
            merged[left] = merge ? merge->merged : kNoId;
        };
        for (std::uint32_t i = 0; i < n_; ++i) look(i);
        for (;;) {
            std::uint32_t best = 0;
            for (std::uint32_t i = 1; i < n_; ++i) best = rank_[i] < rank_[best] ? i : best;
            if (rank_[best] == kNoId) return;
            id_[best] = merged[best];
            --n_;
            for (std::uint32_t i = best + 1; i < n_; ++i) {
                id_[i] = id_[i + 1];
                rank_[i] = rank_[i + 1];
                merged[i] = merged[i + 1];
            }
            look(best);
            if (best > 0) look(best - 1);
        }
    }

    /// The winner of the match at a tournament's node: the lower rank, the leftmost of equals.
    void play(std::uint64_t node) noexcept {
        const auto entrant = [&](std::uint64_t i) { return i < n_ ? winner_[i] : static_cast<std::uint32_t>(i - n_); };
        const std::uint32_t a = entrant(2 * node), b = entrant(2 * node + 1);
        winner_[node] = rank_[a] < rank_[b] || (rank_[a] == rank_[b] && a < b) ? a : b;
    }
    /// After the symbol's rank changed: up the tournament, as far as that changes anything.
    void replay(std::uint32_t symbol) noexcept {
        for (std::uint64_t node = (std::uint64_t{symbol} + n_) / 2; node > 0; node /= 2) {
            const std::uint32_t before = winner_[node];
            play(node);
            if (winner_[node] == before && before != symbol) return;
        }
    }

    static constexpr std::uint32_t kFew = 32;

    const Tables& tables_;
    std::uint32_t capacity_, n_ = 0;
    std::uint32_t* id_;
    std::uint32_t* link_;
    std::uint32_t* rank_;    // of the symbol with the one after it; kNoId: they do not merge
    std::uint32_t* winner_;  // [1 .. n_): a tournament; node i has children 2i, 2i + 1, and node n_ + k is place k
    bool unknown_pending_ = false;
};

bool too_long(std::string_view word, std::uint32_t most) noexcept {
    for (std::uint32_t n = 0; !word.empty(); word.remove_prefix(first_character(word).bytes))
        if (n++ == most) return true;
    return false;
}

/// The longest token at the beginning of a text, and its bytes; kNoId and 0 where there is none.
struct Longest {
    Token id = kNoId;
    std::size_t n_bytes = 0;
};
[[nodiscard]] Longest longest_token(const Tables& tables, std::string_view text) noexcept {
    Longest longest;
    std::uint32_t hash = kHashStart;
    for (std::size_t n = 0; n < text.size() && n < tables.header->max_token_bytes;) {
        hash = hash_step(hash, text[n++]);
        const Token id = tables.find({text.data(), n}, hash_end(hash));
        if (id != kNoId) longest = {id, n};
    }
    return longest;
}

}  // namespace

bool put_byte_pairs(const Tables& tables, std::string_view word, std::span<std::byte> scratch,
                    TokenSink& sink) noexcept {
    if (tables.header->flags & kWholeWords) {
        if (const Token id = tables.find(word); id != kNoId) return sink.put(id), true;
    }
    Symbols symbols(tables, scratch);
    if (!symbols.read(word)) return false;
    symbols.merge_all();
    symbols.put(sink);
    return true;
}

void put_word_pieces(const Tables& tables, std::string_view word, TokenSink& sink) noexcept {
    constexpr std::string_view kLiteral = " ##";  // a word may spell a token that continues words
    const std::uint64_t n_before = sink.n();
    bool known = !too_long(word, tables.header->max_word_characters);
    while (known && !word.empty()) {
        const bool is_literal =
            word.size() > kLiteral.size() && std::memcmp(word.data(), kLiteral.data(), kLiteral.size()) == 0;
        Longest longest;
        for (std::size_t skipped = 0; skipped <= (is_literal ? kLiteral.size() : 0); skipped += kLiteral.size()) {
            const Longest found = longest_token(tables, {word.data() + skipped, word.size() - skipped});
            if (found.id != kNoId && found.n_bytes + skipped > longest.n_bytes)
                longest = {found.id, found.n_bytes + skipped};
        }
        known = longest.id != kNoId;
        if (known) sink.put(longest.id);
        word.remove_prefix(longest.n_bytes);
    }
    if (known) return;
    sink.go_back(n_before);
    if (tables.header->unknown != kNoId) sink.put(tables.header->unknown);
}

}  // namespace fovea
