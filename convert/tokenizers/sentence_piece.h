// A SentencePiece model file becomes a tokenizer section.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"
#include "convert/tokenizers/tokenizer_section.h"

namespace fovea {

/// Kinds of pieces, by their numbers in SentencePiece's files and GGUF.
enum class PieceKind : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// A vocabulary of pieces with scores, and the preparation of text for it, from any kind of file.
struct PieceModel {
    struct Piece {
        std::string text;  ///< a space spelled "▁"
        float score = 0;
        PieceKind kind = PieceKind::normal;
    };
    std::vector<Piece> pieces;
    bool unigram = true;  ///< else byte-pair encoding,
    bool merges = true;   ///< or only characters, which is BPE without merges
    bool byte_fallback = false;
    bool puts_space_first = true;  ///< add_dummy_prefix
    bool removes_extra_spaces = true;
    bool spells_spaces = true;                    ///< escape_whitespaces
    std::string charsmap;                         ///< bytes of the normalizer's map; empty: none
    std::uint32_t unknown = 0, bos = 1, eos = 2;  ///< kNoId: none
};

/// A source with everything but what goes around a text. `place` names the file in refusals. Throws host::Error.
[[nodiscard]] TokenizerSource source_of_pieces(const PieceModel& model, const std::string& place);

/// The model in the bytes of a file: protocol buffers' wire format; the fields of SentencePiece's ModelProto are read.
/// Throws host::Error, naming `file_name`, and what was wanted and had.
[[nodiscard]] PieceModel read_sentence_piece(std::span<const std::byte> bytes, const std::string& file_name);

/// The section's bytes. Nothing goes around a text but facts.bos first, if it is given.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_sentence_piece(std::span<const std::byte> bytes,
                                                                           const std::string& file_name,
                                                                           const TokenizerFacts& facts);

/// Whether the bytes start as such a file does: with a piece.
[[nodiscard]] bool looks_like_sentence_piece(std::span<const std::byte> bytes);

}  // namespace fovea
