// llama2.c's tokenizer.bin becomes a tokenizer section.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"

namespace fovea {

/// The section's bytes for the tokenizer.bin in `bytes`: an int32 (its longest piece), then for each of
/// facts.vocab_size ids (0: all in the file) a float32 score, an int32 length and the piece. The start token is
/// facts.bos, 1 if that is not given; the end tokens are facts.eos, 1 and 2 if empty, as llama2.c's programs have it.
/// Throws host::Error, naming `file_name` and what was wanted and had.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_llama2c(std::span<const std::byte> bytes,
                                                                    const std::string& file_name,
                                                                    const TokenizerFacts& facts);

}  // namespace fovea
