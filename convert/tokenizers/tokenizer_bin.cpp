#include "convert/tokenizers/tokenizer_bin.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convert/tokenizers/tokenizer_section.h"
#include "convert/tokenizers/tokenizer_spelling.h"
#include "engine/format/utf8.h"
#include "host/base/error.h"

namespace fovea {
namespace {

// Ids of the tokens that stand for no text, as SentencePiece gives them to a Llama vocabulary.
constexpr std::uint32_t kUnknownId = 0, kStartId = 1, kEndId = 2;

/// The file's pieces and scores, read with checks.
struct BinPieces {
    std::vector<std::string_view> texts;
    std::vector<float> scores;
};

BinPieces read_pieces(std::span<const std::byte> bytes, const std::string& file_name, std::uint32_t vocab_size) {
    std::size_t pos = 0;
    const auto refuse = [&](std::size_t id, const std::string& rest) {
        throw host::Error(file_name + ": token " + std::to_string(id) +
                          (vocab_size ? " of " + std::to_string(vocab_size) : "") + ": " + rest);
    };
    const auto take = [&](void* to, std::size_t n, std::size_t id) {
        if (bytes.size() - pos < n)
            refuse(id, "expected " + std::to_string(n) + " more bytes, got " + std::to_string(bytes.size() - pos));
        std::memcpy(to, bytes.data() + pos, n);
        pos += n;
    };
    BinPieces pieces;
    std::int32_t longest = 0;
    take(&longest, sizeof longest, 0);
    for (std::uint32_t id = 0; vocab_size ? id < vocab_size : pos < bytes.size(); ++id) {
        float score = 0;
        std::int32_t n = 0;
        take(&score, sizeof score, id);
        take(&n, sizeof n, id);
        if (std::isnan(score)) refuse(id, "expected a score, got NaN");
        const std::int32_t most = std::min(longest, static_cast<std::int32_t>(kMostPieceBytes));
        if (n < 0 || n > most)
            refuse(id, "expected at most " + std::to_string(most) + " bytes, got " + std::to_string(n));
        if (bytes.size() - pos < static_cast<std::size_t>(n))
            refuse(id, "expected " + std::to_string(n) + " more bytes, got " + std::to_string(bytes.size() - pos));
        pieces.texts.emplace_back(reinterpret_cast<const char*>(bytes.data()) + pos, n);
        pieces.scores.push_back(score);
        pos += static_cast<std::size_t>(n);
    }
    if (pos != bytes.size())
        throw host::Error(file_name + ": expected " + std::to_string(pos) + " bytes for vocab_size " +
                          std::to_string(vocab_size) + ", got " + std::to_string(bytes.size()));
    return pieces;
}

}  // namespace

std::vector<std::byte> tokenizer_section_from_llama2c(std::span<const std::byte> bytes, const std::string& file_name,
                                                      const TokenizerFacts& facts) {
    const BinPieces pieces = read_pieces(bytes, file_name, facts.vocab_size);
    TokenizerSource source;
    source.flags = kByteFallback | kDropFirstSpace;
    std::vector<std::uint32_t> text_ids;
    for (std::uint32_t id = 0; id < pieces.texts.size(); ++id) {
        const std::string_view text = pieces.texts[id];
        if (id == kUnknownId || id == kStartId || id == kEndId) {
            source.tokens.set(id, text);
            source.special.push_back(id);
        } else if (const int byte = byte_of_token(text); byte >= 0) {
            source.add_byte(id, byte);
        } else {
            source.tokens.set(id, text);
            text_ids.push_back(id);
            if (!text.empty() && first_character(text).bytes == text.size()) source.lookup.push_back(id);
        }
    }
    source.merges = piece_merges(pieces.texts, pieces.scores, text_ids);
    if (facts.vocab_size > kUnknownId) source.unknown = kUnknownId;
    source.bos = facts.bos.value_or(kStartId);
    source.prefix_ids = {source.bos};
    source.end_ids = facts.eos.empty() ? std::vector<std::uint32_t>{kStartId, kEndId} : facts.eos;
    source.steps.push_back(make_step(StepKind::prepend, 0, {}, " "));
    return write_tokenizer_section(source);
}

}  // namespace fovea
