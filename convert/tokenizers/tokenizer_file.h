// Makes a tokenizer section of a file that holds a tokenizer of any kind.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"

namespace fovea {

/// The section's bytes for a tokenizer.json, a vocab.txt (with the tokenizer_config.json beside it), a vocab.json (with merges.txt), a
/// SentencePiece model,
/// a llama2.c tokenizer.bin, or a GGUF file. facts.vocab_size is what a tokenizer.bin has too; of others it bounds the ids.
/// Throws host::Error, naming the file, and what was wanted and had.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_file(const std::filesystem::path& path,
                                                                 const TokenizerFacts& facts,
                                                                 std::vector<std::string>& notes);

}  // namespace fovea
