// Ids of a text of which some parts are plain: nothing in them is read as a special token.
#pragma once
#include "fovea/tokenizer.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Bytes [first, last) of a text.
struct TextRange {
    std::size_t first = 0, last = 0;
};

/// tokenize, but for ranges in which no special and no other added token is read. Words end at their borders.
///   plain   ascending and apart, within the text
/// Errors: those of tokenize; bad_argument for other ranges.
[[nodiscard]] Status tokenize_around(const Tokenizer& tokenizer, std::string_view text,
                                     std::span<const TextRange> plain, const TokenizeOptions& options,
                                     std::span<std::byte> scratch, std::span<Token> tokens,
                                     std::size_t& n_tokens) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
