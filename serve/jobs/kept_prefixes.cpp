#include "serve/jobs/kept_prefixes.h"

#include <algorithm>

namespace fovea::serve {

std::uint32_t n_same(std::span<const Token> a, std::span<const Token> b) {
    const std::size_t n = std::min(a.size(), b.size());
    return static_cast<std::uint32_t>(std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin());
}

KeptPrefixes::KeptPrefixes(std::uint32_t n_texts, std::uint32_t max_tokens)
    : max_tokens_(max_tokens), texts_(n_texts), tokens_(std::size_t{n_texts} * max_tokens) {}

void KeptPrefixes::end(Text& text) {
    (void)end_cache(text.cache);
    text = {};
}

KeptPrefixes::Found KeptPrefixes::find(std::span<const Token> prompt) {
    Found best;
    Text* from = nullptr;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
        if (texts_[i].used == 0) continue;
        const std::uint32_t n = texts_[i].cache.reach(n_same(tokens(i), prompt));
        if (n <= best.n_tokens) continue;
        best = {texts_[i].cache, n};
        from = &texts_[i];
    }
    if (from) from->used = ++now_;
    return best;
}

void KeptPrefixes::keep(Cache cache, std::span<const Token> text) {
    std::size_t at = texts_.size();
    for (std::size_t i = 0; i < texts_.size(); ++i) {
        if (texts_[i].used == 0) continue;
        const std::uint32_t n = n_same(tokens(i), text);
        if (n == text.size()) {  // it is kept already
            texts_[i].used = ++now_;
            (void)end_cache(cache);
            return;
        }
        if (n == texts_[i].n_tokens) {  // it goes on
            end(texts_[i]);
            at = i;
        }
    }
    if (at == texts_.size())
        at = static_cast<std::size_t>(
            std::min_element(texts_.begin(), texts_.end(), [](auto& a, auto& b) { return a.used < b.used; }) -
            texts_.begin());
    if (at == texts_.size() || text.empty() || text.size() > max_tokens_) {
        (void)end_cache(cache);
        return;
    }
    if (texts_[at].used) end(texts_[at]);
    std::copy(text.begin(), text.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(at * max_tokens_));
    texts_[at] = {cache, static_cast<std::uint32_t>(text.size()), ++now_};
}

bool KeptPrefixes::drop_oldest() {
    Text* oldest = nullptr;
    for (Text& text : texts_)
        if (text.used && (!oldest || text.used < oldest->used)) oldest = &text;
    if (oldest) end(*oldest);
    return oldest != nullptr;
}

std::uint32_t KeptPrefixes::n_pages() const {
    std::uint32_t n = 0;
    for (const Text& text : texts_)
        if (text.used) n += text.cache.n_pages();
    return n;
}

}  // namespace fovea::serve
