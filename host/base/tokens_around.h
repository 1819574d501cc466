// Ids of a text with plain ranges (fovea/tokenize_around.h), with the memory that takes.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "fovea/tokenize_around.h"

namespace fovea::host {

/// Throws host::Error. Without ranges it is host::tokenize, whose `scratch` this is.
[[nodiscard]] std::vector<Token> tokenize_around(const Tokenizer& tokenizer, std::string_view text,
                                                 std::span<const TextRange> plain, const TokenizeOptions& options,
                                                 std::span<std::byte> scratch = {});

}  // namespace fovea::host
