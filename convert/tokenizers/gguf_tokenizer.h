// The tokenizer in a GGUF file's metadata as a tokenizer section.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "convert/formats/gguf.h"

namespace fovea {

/// The section's bytes: byte-level BPE (tokenizer.ggml.model gpt2) with the ways of cutting words that gguf_cuts lists,
/// SentencePiece's BPE (llama) and Unigram (t5), or WordPiece (bert). Empty if the file has none. `vocab_size` bounds
/// the ids. Throws host::Error naming file, key, what was wanted and what was there.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_gguf(const Gguf& file, std::uint32_t vocab_size,
                                                                 std::vector<std::string>& notes);

}  // namespace fovea
