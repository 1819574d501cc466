// Byte-level vocabularies whose tokens are listed by rank, as tiktoken has them, become tokenizer sections.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"

namespace fovea {

/// Tokens' bytes: a token's number is its rank and its id. Two neighbours are merged to the token of the lowest rank first.
class RankedTokens {
public:
    /// Throws host::Error, beginning with `place`, for a token twice, an empty one, and a byte that is none.
    RankedTokens(std::vector<std::string> tokens, std::string place);
    /// The same of a .tiktoken file: lines of a token in base64, a space and its rank.
    [[nodiscard]] static RankedTokens read(std::string_view tiktoken, const std::string& file_name);

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }
    /// The tokens of one word's bytes; only those of ranks below `end` are made.
    [[nodiscard]] std::vector<std::uint32_t> word(std::string_view bytes, std::uint32_t end) const;

    /// The section of these tokens, with special ones by their ids. Words are cut as GPT-2 does. Throws host::Error.
    [[nodiscard]] std::vector<std::byte> section(const std::map<std::string, std::uint32_t>& special,
                                                 const TokenizerFacts& facts, std::vector<std::string>& notes) const;

private:
    std::vector<std::string> tokens_;
    std::map<std::string, std::uint32_t, std::less<>> ids_;
    std::string place_;
};

}  // namespace fovea
