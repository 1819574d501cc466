// How a decoder that reads another text begins its own, and what it may write there, as transformers' `generate` does.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/generator.h"
#include "host/base/source_file.h"
#include "host/translate/beam_search.h"

namespace fovea {

/// The file's "target" metadata: a JSON object of those of these that are known, of generation_config.json or, without that
/// file, of config.json:
///
///     decoder_start_token_id                      else bos_token_id
///     forced_bos_token_id                         what must follow the start
///     forced_eos_token_id                         what must come as the last of max_length tokens
///     eos_token_id, pad_token_id, bos_token_id    ids, or lists of them
///     max_length, max_new_tokens, min_length, min_new_tokens
///     suppress_tokens, begin_suppress_tokens      ids that are never chosen; nor first
///     bad_words_ids                               lists of ids that are never written one after the other
///     no_repeat_ngram_size                        so many tokens never come twice in that order
///     encoder_no_repeat_ngram_size                nor as they stand in the source
///     num_beams, length_penalty, early_stopping   of a BeamSearch
///     renormalize_logits                          chances are shares of what is not forbidden
///
/// Throws host::Error for a member that is not what it must be, and for one that would change what is chosen and is not among these.
[[nodiscard]] std::string target_info(const Fields& config, const std::filesystem::path& generation,
                                      std::uint32_t vocab_size);

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

    /// Of the metadata, or of the members that are to be it. Throws host::Error: "PLACE: FIELD: expected …, got …".
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

/// A generator's filter by those rules. Both it and what it is made of must outlive the text.
class TargetFilter {
public:
    TargetFilter(const TargetRules& rules, std::span<const Token> source) : rules_(rules), source_(source) {}
    [[nodiscard]] TokenFilter filter();

private:
    void forbid(std::span<const Token> text, std::span<std::uint32_t> mask) const;

    const TargetRules& rules_;
    std::span<const Token> source_;
};

}  // namespace fovea
