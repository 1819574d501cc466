#include "host/model/text_pairs.h"

#include <algorithm>
#include <string>

#include "host/base/error.h"

namespace fovea {
namespace {

/// The first ids, or the last.
void keep(std::size_t n, CutAt at, std::vector<Token>& ids) {
    if (at == CutAt::front) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(n));
    ids.resize(n);
}

/// Room for so many ids of both. The longer text is cut; where both are longer than half, the longer has the odd one, of
/// equal ones the second, as in the tokenizers package.
void cut_pair(std::size_t room, CutOf cut, CutAt at, std::vector<Token>& first, std::vector<Token>& second) {
    if (first.size() + second.size() <= room) return;
    if (cut == CutOf::second) return keep(room - first.size(), at, second);
    std::vector<Token>& shorter = first.size() > second.size() ? second : first;
    std::vector<Token>& longer = first.size() > second.size() ? first : second;
    if (shorter.size() > room / 2) keep(room / 2, at, shorter);
    keep(room - shorter.size(), at, longer);
}

}  // namespace

void cut_text(std::span<const Token> of_no_text, std::size_t most, CutAt at, std::vector<Token>& ids) {
    if (ids.size() <= most) return;
    if (at == CutAt::front) {
        const auto own = std::mismatch(of_no_text.begin(), of_no_text.end(), ids.begin(), ids.end()).second;
        const auto n_opening = own - ids.begin();
        if (static_cast<std::size_t>(n_opening) > most) return keep(most, at, ids);
        ids.erase(own, ids.end() - static_cast<std::ptrdiff_t>(most) + n_opening);
        return;
    }
    const auto differs = std::mismatch(of_no_text.rbegin(), of_no_text.rend(), ids.rbegin(), ids.rend()).first;
    const std::span<const Token> closing = of_no_text.last(static_cast<std::size_t>(differs - of_no_text.rbegin()));
    ids.resize(most);
    if (closing.size() <= most) std::copy_backward(closing.begin(), closing.end(), ids.end());
}

PairTokens join_texts(const Tokenizer& tokenizer, std::vector<Token> first, std::vector<Token> second, std::size_t most,
                      CutOf cut, CutAt at, std::uint32_t n_types) {
    PairTokens pair;
    const std::size_t n_around = pair_tokens(tokenizer, 0, 0);
    pair.n_whole = pair_tokens(tokenizer, first.size(), second.size());
    if (n_around >= most || (cut == CutOf::second && n_around + first.size() >= most))
        throw host::Error("text: expected one that leaves room for its pair in " + std::to_string(most) +
                          " tokens, got " + std::to_string(first.size() + n_around));
    const std::size_t n_second = second.size();
    cut_pair(most - n_around, cut, at, first, second);
    if (at == CutAt::front) pair.n_before = n_second - second.size();
    pair.ids.resize(pair_tokens(tokenizer, first.size(), second.size()));
    pair.types.resize(pair.ids.size());
    std::uint64_t second_begin = 0;
    require(join_pair(tokenizer, first, second, pair.ids, pair.types, second_begin), "pair");
    pair.second_begin = second_begin;
    pair.second_end = second_begin + second.size();
    const auto most_type = std::max_element(pair.types.begin(), pair.types.end());
    if (most_type == pair.types.end() || *most_type == 0 || *most_type >= n_types) pair.types.clear();
    return pair;
}

}  // namespace fovea
