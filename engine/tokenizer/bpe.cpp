#include "engine/tokenizer/bpe.h"

#include "engine/tokenizer/utf8.h"

namespace fovea {

Bpe::Bpe(const Tables& tables, std::span<std::byte> scratch) noexcept : tables_(tables) {
    capacity_ = static_cast<std::uint32_t>(scratch.size() / kBytesPerSymbol);
    id_ = reinterpret_cast<std::uint32_t*>(scratch.data());
    link_ = id_ + capacity_;
    rank_ = link_ + capacity_;
    winner_ = rank_ + capacity_;
}

bool Bpe::encode(std::string_view word, TokenSink& sink) noexcept {
    if (tables_.header->flags & kWholeWords) {
        if (const Token id = tables_.find(word); id != kNoId) {
            sink.put(id);
            return true;
        }
    }
    n_ = 0;
    if (!make_symbols(word)) return false;
    if (n_ > 1) merge_all();
    for (std::uint32_t i = 0; i < n_; i = link_[i] + 1) sink.put(id_[i]);
    return true;
}

bool Bpe::make_symbols(std::string_view word) noexcept {
    const bool bytes = tables_.header->flags & kSymbolsAreBytes;
    unknown_pending_ = false;
    while (!word.empty()) {
        const std::size_t n = bytes ? 1 : first_character(word).bytes;
        const std::string_view symbol{word.data(), n};
        word.remove_prefix(n);
        Token id = kNoId;
        if (!bytes) id = tables_.find(symbol);
        else if (!tables_.byte_ids.empty()) id = tables_.byte_ids[static_cast<std::uint8_t>(symbol[0])];
        if (id == kNoId) {
            if (!add_unknown(symbol)) return false;
        } else {
            if (unknown_pending_ && !add_symbol(tables_.header->unknown)) return false;
            unknown_pending_ = false;
            if (!add_symbol(id)) return false;
        }
    }
    return !unknown_pending_ || add_symbol(tables_.header->unknown);
}

bool Bpe::add_symbol(Token id) noexcept {
    if (n_ == capacity_) return false;
    id_[n_] = id;
    link_[n_] = n_;
    ++n_;
    return true;
}

/// Bytes where there is a token for each, else the unknown token where there is one, else nothing. An unknown token is
/// only added when the next known character comes, bytes of others overtaking it: so does the `tokenizers` package.
bool Bpe::add_unknown(std::string_view character) noexcept {
    if ((tables_.header->flags & kByteFallback) && !tables_.byte_ids.empty()) {
        bool all = true;
        for (const char c : character) all = all && tables_.byte_ids[static_cast<std::uint8_t>(c)] != kNoId;
        if (all) {
            for (const char c : character)
                if (!add_symbol(tables_.byte_ids[static_cast<std::uint8_t>(c)])) return false;
            return true;
        }
    }
    if (tables_.header->unknown == kNoId) return true;
    if (unknown_pending_ && !(tables_.header->flags & kFuseUnknown) && !add_symbol(tables_.header->unknown))
        return false;
    unknown_pending_ = true;
    return true;
}

void Bpe::rank_pair(std::uint32_t left) noexcept {
    const std::uint32_t right = link_[left] + 1;
    const TokenizerMerge* merge = right < n_ ? tables_.merge(id_[left], id_[right]) : nullptr;
    rank_[left] = merge ? merge->rank : kNoId;
}

/// Merges the symbol with the one after it. False where they do not merge after all.
bool Bpe::merge_at(std::uint32_t left) noexcept {
    const std::uint32_t right = link_[left] + 1;
    const TokenizerMerge* merge = right < n_ ? tables_.merge(id_[left], id_[right]) : nullptr;
    if (!merge) return false;
    id_[left] = merge->merged;
    const std::uint32_t last = link_[right];
    link_[left] = last;
    link_[last] = left;
    rank_[right] = kNoId;
    rank_pair(left);
    return true;
}

void Bpe::merge_all() noexcept {
    for (std::uint32_t i = 0; i < n_; ++i) rank_pair(i);
    play_all();
    for (std::uint32_t best = winner_[1]; rank_[best] != kNoId; best = winner_[1]) {
        const std::uint32_t right = link_[best] + 1;
        if (!merge_at(best)) return;
        replay(best);
        replay(right);
        if (best > 0) {
            const std::uint32_t before = link_[best - 1];
            rank_pair(before);
            replay(before);
        }
    }
}

std::uint32_t Bpe::better(std::uint32_t a, std::uint32_t b) const noexcept {
    return rank_[a] < rank_[b] || (rank_[a] == rank_[b] && a < b) ? a : b;
}

void Bpe::play_all() noexcept {
    for (std::uint32_t i = n_ - 1; i > 0; --i) {
        const std::uint64_t left = std::uint64_t{i} * 2;
        const std::uint32_t a = left < n_ ? winner_[left] : static_cast<std::uint32_t>(left - n_);
        const std::uint32_t b = left + 1 < n_ ? winner_[left + 1] : static_cast<std::uint32_t>(left + 1 - n_);
        winner_[i] = better(a, b);
    }
}

/// After the symbol's rank changed: up the tournament, as far as that changes anything.
void Bpe::replay(std::uint32_t symbol) noexcept {
    for (std::uint64_t node = (std::uint64_t{symbol} + n_) / 2; node > 0; node /= 2) {
        const std::uint64_t left = node * 2;
        const std::uint32_t a = left < n_ ? winner_[left] : static_cast<std::uint32_t>(left - n_);
        const std::uint32_t b = left + 1 < n_ ? winner_[left + 1] : static_cast<std::uint32_t>(left + 1 - n_);
        const std::uint32_t before = winner_[node];
        winner_[node] = better(a, b);
        if (winner_[node] == before && before != symbol) return;
    }
}

}  // namespace fovea
