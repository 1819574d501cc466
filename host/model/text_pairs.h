// Texts that are cut to a length, and two texts as one for encoders that read pairs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

/// Which text of a pair that is too long is cut: the longer one, or the second.
enum class CutOf { longer, second };

/// Where a text that is too long is cut: tokens behind those that are kept go, or those before them.
enum class CutAt { end, front };

/// At most so many ids. A text is cut; the tokens that close it ([SEP]) stay, or those that open it ([CLS]) where its front is
/// cut, unless there is no room for them all. `of_no_text`: the ids of an empty text, which begin and end with those.
void cut_text(std::span<const Token> of_no_text, std::size_t most, CutAt at, std::vector<Token>& ids);

struct PairTokens {
    std::vector<Token> ids, types;  ///< types may be empty: all are 0
    std::size_t second_begin = 0, second_end = 0;
    std::size_t n_whole = 0;   ///< how many ids there were before the texts were cut
    std::size_t n_before = 0;  ///< of those of the second text, how many were cut at its front
};

/// The texts' own ids become those of the pair, with the tokenizer's template around them: `most` at most. A model may know
/// fewer types than the template has, n_types: then all are 0. Throws host::Error where no room is left for the second text, or
/// where the tokenizer joins no texts.
[[nodiscard]] PairTokens join_texts(const Tokenizer& tokenizer, std::vector<Token> first, std::vector<Token> second,
                                    std::size_t most, CutOf cut, CutAt at, std::uint32_t n_types);

}  // namespace fovea
