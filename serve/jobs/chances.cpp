// Log probabilities of tokens, for those who ask.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "serve/jobs/text_worker.h"

namespace fovea::serve {

ChosenToken chances(const Tokenizer& tokenizer, std::span<const float> logits, Token chosen,
                    std::uint32_t n_likeliest) {
    const double highest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - highest);
    const double normalizer = highest + std::log(sum);
    const auto chance = [&](Token id) {
        return TokenChance{std::string(token_bytes(tokenizer, id)), id, static_cast<float>(logits[id] - normalizer)};
    };
    ChosenToken made{chance(chosen), {}};
    std::vector<Token> ids(n_likeliest ? logits.size() : 0);
    std::iota(ids.begin(), ids.end(), Token{0});
    const auto n = std::min<std::size_t>(n_likeliest, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(),
                      [&](Token a, Token b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    for (std::size_t i = 0; i < n; ++i) made.likeliest.push_back(chance(ids[i]));
    return made;
}

}  // namespace fovea::serve
