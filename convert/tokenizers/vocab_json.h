// GPT-2's two files, vocab.json and merges.txt, become a tokenizer section.
#pragma once
#include <filesystem>

#include "convert/tokenizers/tokenizer_json.h"

namespace fovea {

/// Whether a folder has both, of a kind that is read here: byte-level BPE as GPT-2, RoBERTa, Whisper or Qwen 2 cut words, by the
/// tokenizer_class of tokenizer_config.json or config.json, or else by the latter's model_type. Throws host::Error for files that are
/// no JSON.
[[nodiscard]] bool reads_vocab_json(const std::filesystem::path& folder);

/// The section's bytes for a vocab.json and the merges.txt beside it; if no file says whose they are, as GPT-2's.
/// Tokens with a role are that file's or special_tokens_map.json's, further ones added_tokens.json's. Throws
/// host::Error, naming the file, and what was wanted and had.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_vocab_json(const std::filesystem::path& path,
                                                                       const TokenizerFacts& facts,
                                                                       std::vector<std::string>& notes);

}  // namespace fovea
