#pragma once
#include "fovea/tokenize_around.h"

namespace fovea {

/// tokenize_around with ranges that are ascending, apart and within the text.
[[nodiscard]] Status tokenize_parts(const Tokenizer& tokenizer, std::string_view text, std::span<const TextRange> plain,
                                    const TokenizeOptions& options, std::span<std::byte> scratch,
                                    std::span<Token> tokens, std::size_t& n_tokens) noexcept;

}  // namespace fovea
