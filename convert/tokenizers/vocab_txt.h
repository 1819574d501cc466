// BERT's vocab.txt becomes a tokenizer section.
#pragma once
#include <filesystem>

#include "convert/tokenizers/tokenizer_json.h"

namespace fovea {

/// The section's bytes for a vocab.txt: one token on each line, its number its id. The preparation of text, and the
/// tokens around it, are read from the tokenizer_config.json at `config`, if there is one: do_lower_case,
/// strip_accents, tokenize_chinese_chars, unk_token, cls_token, sep_token, pad_token, mask_token; else BertTokenizer's
/// defaults in transformers hold. Throws host::Error, naming the file, and what was wanted and had.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_vocab_txt(std::span<const char> text,
                                                                      const std::string& file_name,
                                                                      const std::filesystem::path& config,
                                                                      const TokenizerFacts& facts);

}  // namespace fovea
