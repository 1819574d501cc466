// Texts whose keys and values are kept after their request has ended, so that a prompt which begins alike is not computed
// again: a system prompt, a conversation's earlier turns. What is kept gives way to whoever needs pages.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/cache.h"

namespace fovea::serve {

[[nodiscard]] std::uint32_t n_same(std::span<const Token> a, std::span<const Token> b);

/// At most n_texts of at most max_tokens each; their memory is taken once, here. Caches are those of one pool.
class KeptPrefixes {
public:
    KeptPrefixes(std::uint32_t n_texts, std::uint32_t max_tokens);

    /// The text that shares most tokens with `prompt`, of those that rewind reaches. n_tokens 0: none shares any.
    struct Found {
        Cache cache;
        std::uint32_t n_tokens = 0;
    };
    [[nodiscard]] Found find(std::span<const Token> prompt);
    /// Takes over `cache`, which holds `tokens`: it replaces what it continues, else whatever was unused longest. Where a
    /// text that is kept continues it, the cache ends.
    void keep(Cache cache, std::span<const Token> tokens);
    /// Ends the cache that was unused longest. False: there is none left.
    [[nodiscard]] bool drop_oldest();
    [[nodiscard]] std::uint32_t n_pages() const;  ///< that they hold, a shared one counted for each

private:
    struct Text {
        Cache cache;
        std::uint32_t n_tokens = 0;
        std::uint64_t used = 0;  // when; 0: free
    };
    [[nodiscard]] std::span<const Token> tokens(std::size_t i) const {
        return {tokens_.data() + i * max_tokens_, texts_[i].n_tokens};
    }
    void end(Text& text);

    std::uint32_t max_tokens_;
    std::uint64_t now_ = 0;
    std::vector<Text> texts_;
    std::vector<Token> tokens_;  // [n_texts, max_tokens]
};

}  // namespace fovea::serve
