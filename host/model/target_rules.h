// How a decoder that reads another text begins its own, and what it may write there, as transformers' `generate` does.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config.h"
#include "host/model/beam_options.h"

namespace fovea {

/// What a file's "target" metadata says (convert/sources/hf_target.h has its members).
struct TargetRules {
    Token start = 0;
    std::optional<Token> forced;  ///< the second token
    std::vector<Token> ends, suppressed, suppressed_first;
    std::vector<Token> plain;  ///< start, end and padding: of special tokens those that are no language
    std::vector<std::vector<Token>> bad_words;
    std::uint32_t max_length = 0;  ///< of the text with its start token; 0: no limit
    std::uint32_t max_new = 0;     ///< 0: no limit
    std::uint32_t min_length = 0, min_new = 0;
    std::uint32_t no_repeat = 0, no_repeat_source = 0;  ///< tokens; 0: any repetition
    bool ends_at_max = false;                           ///< the last of max_length tokens is an end
    BeamOptions beams;                                  ///< most_tokens is left to those who search

    /// Reads the metadata, or the members that are to be it. Throws host::Error: "PLACE: FIELD: expected …, got …".
    [[nodiscard]] static TargetRules read(std::string_view json, std::uint32_t vocab_size, const std::string& place);

    [[nodiscard]] bool is_plain(Token token) const;
    /// What the decoder reads first.
    [[nodiscard]] std::vector<Token> prompt() const;
    /// Tokens of a text at most, with all that the decoder reads.
    [[nodiscard]] std::uint32_t longest(std::uint32_t max_positions) const;
    /// How many tokens may follow the prompt, no end token counted.
    [[nodiscard]] std::uint32_t most_new(std::uint32_t max_positions) const;
    /// Whether an end is what must follow those: where it is the rules that end the text, not max_positions.
    [[nodiscard]] bool ends_by_length(std::uint32_t max_positions) const;
};

}  // namespace fovea
