// The tokenizer_config.json beside a tokenizer.json, where transformers takes its word.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "host/base/json.h"

namespace fovea {

/// The folder's tokenizer_config.json, with special_tokens_map.json's members if it lists no added tokens; an empty object without it.
[[nodiscard]] SortedJson config_beside(const std::filesystem::path& folder);

/// Changes the parts of the tokenizer.json at `file_name` to what transformers makes of both files. The flags of an added token are
/// those of added_tokens_decoder; tokens that it or a role names alone become a list, added_tokens_beside, whose ids are the
/// vocabulary's or the next. `notes` gets a line where add_prefix_space contradicts the steps, which count.
void heed_config(const SortedJson& config, const std::string& file_name, SortedJson& parts,
                 std::vector<std::string>& notes);

}  // namespace fovea
