// The two large parts of a tokenizer.json, its vocabulary and its merges, read as a stream into little memory.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "convert/tokenizers/tokenizer_section.h"

namespace fovea {

/// model.vocab and model.merges of a tokenizer.json, as they are spelled there.
struct Vocabulary {
    TokenTexts spellings;                ///< by id
    std::vector<TokenizerMerge> merges;  ///< rank: the merge's place in the file
    std::vector<double> scores;          ///< of a list of tokens with scores, Unigram's, by id; else empty

    /// The id of a spelling, or kNoId.
    [[nodiscard]] std::uint32_t find(std::string_view spelling) const;

    /// Ids by their spelling's hash; spellings are compared in `spellings`, so none is stored twice.
    std::unordered_multimap<std::uint32_t, std::uint32_t> ids;
};

/// Reads them from the whole file, which is known to be JSON. `max_tokens` bounds the ids. Throws host::Error.
[[nodiscard]] Vocabulary read_vocabulary(std::span<const char> json_text, const std::string& file_name,
                                         std::uint32_t max_tokens);

}  // namespace fovea
