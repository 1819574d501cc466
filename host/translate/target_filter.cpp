#include "host/translate/target_filter.h"

#include <algorithm>

namespace fovea {
namespace {

void clear(std::span<std::uint32_t> mask, Token token) {
    if (token / 32 < mask.size()) mask[token / 32] &= ~(1u << token % 32);
}

/// Forbids what follows the text's last n − 1 tokens wherever they stand in `seen`, one after the other.
void forbid_repeated(std::span<const Token> text, std::span<const Token> seen, std::uint32_t n,
                     std::span<std::uint32_t> mask) {
    if (n == 0 || text.size() + 1 < n) return;
    const std::span<const Token> last = text.last(n - 1);
    for (std::size_t at = 0; at + n <= seen.size(); ++at)
        if (std::equal(last.begin(), last.end(), seen.begin() + static_cast<std::ptrdiff_t>(at)))
            clear(mask, seen[at + n - 1]);
}

}  // namespace

void TargetFilter::forbid(std::span<const Token> text, std::span<std::uint32_t> mask) const {
    for (const Token token : rules_.suppressed) clear(mask, token);
    const std::size_t n_prompt = rules_.prompt().size();
    if (text.size() == n_prompt)
        for (const Token token : rules_.suppressed_first) clear(mask, token);
    if (text.size() < (rules_.min_new ? 1 + rules_.min_new : rules_.min_length))
        for (const Token token : rules_.ends) clear(mask, token);
    for (const std::vector<Token>& words : rules_.bad_words)
        if (words.size() - 1 <= text.size() &&
            std::equal(words.begin(), words.end() - 1, text.last(words.size() - 1).begin()))
            clear(mask, words.back());
    forbid_repeated(text, text, rules_.no_repeat, mask);
    forbid_repeated(text, source_, rules_.no_repeat_source, mask);
}

TokenFilter TargetFilter::filter() {
    const auto allow = [](void* context, std::span<const Token> text, std::span<std::uint32_t> mask) {
        static_cast<const TargetFilter*>(context)->forbid(text, mask);
    };
    const auto accept = [](void*, Token) {};
    return {.allow = allow, .accept = accept, .context = this};
}

}  // namespace fovea
