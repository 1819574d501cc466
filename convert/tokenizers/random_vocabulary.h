// A vocabulary of made-up words, of any size: for tests and benchmarks of what depends only on its size.
#pragma once
#include <cstdint>

#include "convert/tokenizers/tokenizer_section.h"

namespace fovea {

/// Byte-level pairs: all bytes, punctuation as JSON and programs have it, numbers, words with and without a space before them,
/// capitals, characters of three bytes alone and in pairs. The last id ends a text.
[[nodiscard]] TokenizerSource random_vocabulary(std::uint32_t n_tokens);

}  // namespace fovea
