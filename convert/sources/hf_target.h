// What a Hugging Face folder says of the text that a decoder writes from another, as transformers' `generate` reads it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "host/base/source_file.h"

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
///     renormalize_logits                          probabilities are renormalised over the allowed tokens
///
/// Throws host::Error for a member that is not what it must be, and for one that would change what is chosen and is not among these.
[[nodiscard]] std::string target_info(const Fields& config, const std::filesystem::path& generation,
                                      std::uint32_t vocab_size);

}  // namespace fovea
