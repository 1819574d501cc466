#include "host/model/text_pairs.h"

#include <algorithm>
#include <string>

#include "host/base/error.h"

namespace fovea {
namespace {

/// Room for so many ids of both. The longer text is cut; where both are longer than half, the longer has the odd one, of
/// equal ones the second, as in the tokenizers package.
void cut_pair(std::size_t room, CutOf cut, std::vector<Token>& first, std::vector<Token>& second) {
    if (first.size() + second.size() <= room) return;
    if (cut == CutOf::second) return second.resize(room - first.size());
    std::vector<Token>& shorter = first.size() > second.size() ? second : first;
    std::vector<Token>& longer = first.size() > second.size() ? first : second;
    if (shorter.size() > room / 2) shorter.resize(room / 2);
    longer.resize(room - shorter.size());
}

}  // namespace

void cut_text(std::span<const Token> of_no_text, std::size_t most, std::vector<Token>& ids) {
    if (ids.size() <= most) return;
    const auto differs = std::mismatch(of_no_text.rbegin(), of_no_text.rend(), ids.rbegin(), ids.rend()).first;
    const std::span<const Token> closing = of_no_text.last(static_cast<std::size_t>(differs - of_no_text.rbegin()));
    ids.resize(most);
    if (closing.size() <= most) std::copy_backward(closing.begin(), closing.end(), ids.end());
}

PairTokens join_texts(const Tokenizer& tokenizer, std::vector<Token> first, std::vector<Token> second, std::size_t most,
                      CutOf cut, std::uint32_t n_types) {
    PairTokens pair;
    const std::size_t n_around = pair_tokens(tokenizer, 0, 0);
    pair.n_whole = pair_tokens(tokenizer, first.size(), second.size());
    if (n_around >= most || (cut == CutOf::second && n_around + first.size() >= most))
        throw host::Error("text: expected one that leaves room for its pair in " + std::to_string(most) +
                          " tokens, got " + std::to_string(first.size() + n_around));
    cut_pair(most - n_around, cut, first, second);
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
