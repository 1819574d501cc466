// The pieces of one word by longest match.
#pragma once
#include <string_view>

#include "engine/tokenizer/bpe.h"

namespace fovea {

/// Puts the longest token that `word` starts with, then the longest that the rest starts with, and so on; the unknown
/// token alone where a rest starts with none, or the word is too long. A token for a word's beginning has a space first,
/// as the word has, which tells it from one that continues a word. Time: word length × longest token.
/// Source: Schuster and Nakajima 2012; Devlin et al. 2019.
void put_word_pieces(const Tables& tables, std::string_view word, TokenSink& sink) noexcept;

}  // namespace fovea
