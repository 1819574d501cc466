// The source of a tokenizer section, which the readers of tokenizer files fill in, and its writing as a section of the
// Fovea file.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convert/tokenizers/pattern.h"
#include "engine/format/format.h"

namespace fovea {

/// Strings with ids, in one block of memory.
class TokenTexts {
public:
    /// Whether `id` had no text yet and has it now.
    bool set(std::uint32_t id, std::string_view text);
    [[nodiscard]] bool has(std::uint32_t id) const { return id < places_.size() && places_[id].offset != kNoId; }
    [[nodiscard]] std::string_view at(std::uint32_t id) const {
        return has(id) ? std::string_view(text_).substr(places_[id].offset, places_[id].bytes) : std::string_view();
    }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }  ///< last id + 1

private:
    struct Place {
        std::uint32_t offset = kNoId, bytes = 0;
    };
    std::string text_;
    std::vector<Place> places_;
};

struct AddedTokenSource {
    std::uint32_t id = 0;
    std::uint16_t flags = 0;  ///< AddedFlag
    std::string text;         ///< as it is to be matched
};

/// A map of characters: a trie of keys to places in `text`, where each replacement ends with a zero byte.
struct MapSource {
    std::vector<std::uint32_t> units;
    std::string text;
    bool operator==(const MapSource&) const = default;
};

/// A tokenizer, ready to be written. Ids are checked by those who fill it in.
struct TokenizerSource {
    TokenizerModel model = TokenizerModel::bpe;
    std::uint32_t max_word_characters = 0;  ///< word_piece
    std::uint32_t flags = 0;                ///< TokenizerFlag
    std::uint32_t bos = kNoId, unknown = kNoId;
    TokenTexts tokens;                   ///< the bytes each id stands for in a text
    std::vector<std::uint32_t> special;  ///< ids
    std::vector<std::uint32_t> joined;   ///< ids that leave their first space out in a text
    std::vector<std::uint32_t> end_ids, prefix_ids, suffix_ids;
    std::vector<TokenizerStep> steps;
    std::array<std::uint32_t, 256> byte_ids;  ///< kNoId if a byte has no token
    std::vector<TokenizerMerge> merges;       ///< the later of two for one pair counts
    std::vector<std::uint32_t> lookup;        ///< ids that are found by their bytes
    std::vector<AddedTokenSource> added;
    std::vector<PatternStates> patterns;  ///< those that steps name by number
    std::vector<MapSource> maps;          ///< likewise
    std::vector<std::pair<std::string, std::uint32_t>>
        pieces;                       ///< unigram: spellings and ids; the last of equal ones counts
    std::vector<double> scores;       ///< unigram: by id, and an unknown character's after them
    std::vector<TokenizerPart> pair;  ///< the template of two texts

    TokenizerSource() { byte_ids.fill(kNoId); }
    /// Token `id` stands for that byte, the first such token in words too.
    void add_byte(std::uint32_t id, int byte);
};

/// A step with its strings. Throws host::Error if they are longer than a step holds.
[[nodiscard]] TokenizerStep make_step(StepKind kind, std::uint8_t mode = 0, std::string_view from = {},
                                      std::string_view to = {}, std::uint32_t limit = 0);

/// Steps that rewrite a text, to be tried on one.
class Rewriter {
public:
    /// `patterns` and `maps` are those that the steps name by number.
    Rewriter(const std::vector<TokenizerStep>& steps, const std::vector<PatternStates>& patterns,
             const std::vector<MapSource>& maps);
    /// The result of the first `n_steps` for `text`; steps that only cut are skipped. Throws host::Error if it gets
    /// longer than 64 KB.
    [[nodiscard]] std::string rewritten(std::string_view text, std::size_t n_steps) const;

private:
    std::vector<std::uint64_t> section_;
    std::size_t n_bytes_ = 0;
    mutable std::string room_;
};

/// The header's text_growth and token_growth, from what steps, one by one and together, make of a text.
void set_growth(const TokenizerSource& source, TokenizerHeader& header);

/// A section that holds only what steps need, with room for any growth, for Rewriter.
[[nodiscard]] std::vector<std::byte> write_steps_section(const TokenizerSource& source);

/// The section's bytes: the same source gives the same bytes everywhere. Throws host::Error if a limit of the format is
/// passed.
[[nodiscard]] std::vector<std::byte> write_tokenizer_section(const TokenizerSource& source);

}  // namespace fovea
