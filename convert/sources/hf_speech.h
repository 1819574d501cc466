// What a speech model's folder says beside its weights: how samples become frames, and which tokens steer it.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fovea/config.h"
#include "host/base/source_file.h"

namespace fovea {

/// Reads preprocessor_config.json, or takes Whisper's settings where there is none. `sound` comes with n_mels and n_frames, which
/// the model itself says. The result is the file's own filters [n_mels][n_bins], or those computed.
[[nodiscard]] std::vector<float> read_preprocessor(const std::filesystem::path& file, Sound& sound);

/// The file's "speech" metadata: a JSON object of those of these that are known, of generation_config.json or, without that file, of
/// config.json; or by the names of added `tokens`:
///
///     suppress_tokens, begin_suppress_tokens   ids that are never chosen; nor first
///     decoder_start_token_id, eos_token_id, prev_sot_token_id, no_timestamps_token_id, no_speech_token_id, timestamp_begin
///     lang_to_id {"<|en|>": id}, task_to_id {"transcribe": id}, is_multilingual
///     max_initial_timestamp_index, alignment_heads [[layer, head]]
///
/// `notes` gets a line for each other member by which transformers' `generate` writes other transcripts.
[[nodiscard]] std::string speech_info(const Fields& config, const std::filesystem::path& generation,
                                      const std::map<std::string, std::uint32_t>& tokens,
                                      std::vector<std::string>& notes);

/// The ids of a folder's added tokens by their names, of tokenizer.json or, without one, of added_tokens.json beside vocab.json. A
/// file that is none is left to who reads the tokenizer.
[[nodiscard]] std::map<std::string, std::uint32_t> added_tokens(const std::filesystem::path& folder);

}  // namespace fovea
