// GPT-2's two files, vocab.json and merges.txt, become a tokenizer section.
#pragma once
#include <filesystem>

#include "convert/tokenizer_json.h"

namespace fovea {

/// The section's bytes for a vocab.json and the merges.txt beside it: byte-level BPE as GPT-2, RoBERTa or Qwen 2 cut words, by
/// the tokenizer_class of the tokenizer_config.json beside them; without one as GPT-2. Tokens with a role are that file's or
/// special_tokens_map.json's, further ones added_tokens.json's. Throws Refusal, naming the file, and what was wanted and had.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_vocab_json(const std::filesystem::path& path,
                                                                       const TokenizerFacts& facts);

}  // namespace fovea
