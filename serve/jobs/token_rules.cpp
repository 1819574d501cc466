#include "serve/jobs/token_rules.h"

#include <algorithm>
#include <utility>

namespace fovea::serve {
namespace {

struct RulesPlace {
    std::shared_ptr<const TokenRules> rules;
    std::size_t n_prompt;
    Constrained inner;
    std::vector<Token> cleared;  // of one mask
};

bool is_left(std::span<const std::uint32_t> mask, std::uint32_t vocab_size) {
    const std::size_t n_whole = vocab_size / 32;
    if (std::any_of(mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(n_whole), [](auto word) { return word; }))
        return true;
    return vocab_size % 32 && mask[n_whole] & ((1u << vocab_size % 32) - 1);
}

void allow(void* context, std::span<const Token> text, std::span<std::uint32_t> mask) {
    auto& place = *static_cast<RulesPlace*>(context);
    const TokenFilter& inner = place.inner.filter;
    if (inner.allow) inner.allow(inner.context, text, mask);
    for (std::size_t i = 0; i < place.rules->allowed.size(); ++i) mask[i] &= place.rules->allowed[i];
    const std::span<const Token> answer = text.subspan(std::min(place.n_prompt, text.size()));
    place.cleared.clear();
    for (const std::vector<Token>& sequence : place.rules->banned) {
        const std::size_t n = sequence.size() - 1;
        const Token last = sequence.back();
        if (n > answer.size() || !std::equal(sequence.begin(), sequence.end() - 1, answer.last(n).begin())) continue;
        if (!(mask[last / 32] >> last % 32 & 1)) continue;
        mask[last / 32] &= ~(1u << last % 32);
        place.cleared.push_back(last);
    }
    if (!place.cleared.empty() && !is_left(mask, place.rules->vocab_size))
        for (const Token token : place.cleared) mask[token / 32] |= 1u << token % 32;
}

void accept(void* context, Token token) {
    const TokenFilter& inner = static_cast<RulesPlace*>(context)->inner.filter;
    if (inner.accept) inner.accept(inner.context, token);
}

std::size_t forced(void* context, std::span<Token> tokens) {
    const TokenFilter& inner = static_cast<RulesPlace*>(context)->inner.filter;
    return inner.forced(inner.context, tokens);
}

}  // namespace

Constrained constrain_tokens(std::shared_ptr<const TokenRules> rules, std::size_t n_prompt, Constrained inner) {
    const bool forces = inner.filter.forced && rules->allowed.empty();
    const auto place = std::make_shared<RulesPlace>(RulesPlace{std::move(rules), n_prompt, std::move(inner), {}});
    return {place, {.allow = allow, .accept = accept, .context = place.get(), .forced = forces ? forced : nullptr}};
}

}  // namespace fovea::serve
