// Tokenizers in two files, a SentencePiece model that cuts texts and a vocab.json that numbers its pieces: Marian's source.spm
// (Junczys-Dowmunt et al. 2018) and M2M-100's sentencepiece.bpe.model (Fan et al. 2020).
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"

namespace fovea {

/// The SentencePiece model of a folder that also has a vocab.json for it; empty if it is no such folder.
[[nodiscard]] std::filesystem::path numbered_pieces(const std::filesystem::path& folder);

/// The section's bytes for the vocab.json beside that model. An end follows every text. Before it stands the source's language
/// if tokens __xx__ name languages; >>xx<< in a text is a token, as Marian has it for the target's. Pieces that
/// vocab.json does not have are left out, with a note in `notes`. Throws host::Error, naming the file, and what was
/// wanted and had.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_numbered_pieces(const std::filesystem::path& vocab_json,
                                                                            const TokenizerFacts& facts,
                                                                            std::vector<std::string>& notes);

}  // namespace fovea
