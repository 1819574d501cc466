// Ids of texts and texts of ids, with the memory that takes.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
namespace host {

/// A text's ids. Throws host::Error, `subject` first.
///   scratch   tokenize_scratch_bytes(tokenizer, text.size()) at least; empty: taken for the call
[[nodiscard]] std::vector<Token> tokenize(const Tokenizer& tokenizer, std::string_view text,
                                          const TokenizeOptions& options = {}, const std::string& subject = {},
                                          std::span<std::byte> scratch = {});

struct TokenizedPair {
    std::vector<Token> tokens;
    std::vector<Token> types;  ///< each token's
};
/// Two texts by the tokenizer's template of two. Throws host::Error, `subject` first.
[[nodiscard]] TokenizedPair tokenize_pair(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                                          const TokenizeOptions& options, const std::string& subject = {});

struct DetokenizeOptions {
    bool show_special = false;           ///< special tokens give their names
    bool goes_on = false;                ///< more ids follow: a character that is not whole is left out
    std::span<const Token> before = {};  ///< ids whose text came before, on which the first space depends
};
/// The text of ids, each below tokenizer.vocab_size().
[[nodiscard]] std::string detokenize(const Tokenizer& tokenizer, std::span<const Token> ids,
                                     const DetokenizeOptions& options = {});

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
