// Where in a text each of its tokens lies.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
namespace host {

/// Characters of a text (Unicode code points), the space before a word included where the token has it.
struct TokenPlace {
    std::size_t begin = 0, end = 0;
};
struct PlacedTokens {
    std::vector<Token> tokens;
    std::vector<TokenPlace> places;  ///< of each token; begin = end: it stands for none, as [CLS]
};
/// A text's ids and their places, those that the `tokenizers` package names. A token of changed characters (case, accents, normal
/// forms) has the place of what it was made of; of unknown characters, all that lies between its neighbours. Throws host::Error.
[[nodiscard]] PlacedTokens tokenize_with_places(const Tokenizer& tokenizer, std::string_view text,
                                                const TokenizeOptions& options = {});

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
