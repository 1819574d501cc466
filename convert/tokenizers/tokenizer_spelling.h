// How vocabularies spell bytes, and how pieces with scores become merges: what several readers share.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/format.h"

namespace fovea {

/// A character in UTF-8.
[[nodiscard]] std::string spelled(std::uint32_t code);

/// The character that spells a byte in a byte-level vocabulary (Radford et al. 2019).
[[nodiscard]] std::string byte_spelling(std::uint32_t byte);

/// The bytes that such characters spell. False, and the text as it is, if one of them spells none.
bool spelled_bytes(std::string_view text, std::string& bytes);

/// How SentencePiece spells a byte's token: "<0x41>".
[[nodiscard]] std::string byte_token(std::uint32_t byte);

/// The byte that such a token stands for, or -1.
[[nodiscard]] int byte_of_token(std::string_view spelling);

/// A piece's bytes, so that the ways to part it in two are few.
inline constexpr std::size_t kMostPieceBytes = 1024;

/// How much less than the least likely piece an unknown character scores (Kudo and Richardson 2018).
inline constexpr double kUnknownPenalty = 10;

/// SentencePiece's BPE merges the neighbours whose joined text has the best score, so each way to part a piece in two
/// is a merge, ranked by the score of the whole; equal scores are equal ranks, and the first of equal pieces counts.
///   texts, scores  by id; a text has at most kMostPieceBytes
///   ids            which of them are pieces of text
[[nodiscard]] std::vector<TokenizerMerge> piece_merges(std::span<const std::string_view> texts,
                                                       std::span<const float> scores,
                                                       std::span<const std::uint32_t> ids);

}  // namespace fovea
