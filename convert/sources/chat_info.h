// What a source says of conversations: its templates, and the tokens that they print.
#pragma once
#include <filesystem>

#include "convert/weights/model_source.h"

namespace fovea {

class Gguf;

/// Adds to the source's info, where the folder has them: chat_template; chat_template_tool_use, which is used where there are tools;
/// and special_tokens, a JSON object with the bos_token and eos_token of tokenizer_config.json, else of special_tokens_map.json,
/// which templates print: empty where they are null, none where neither names it.
void add_chat_info(const std::filesystem::path& folder, ModelSource& source);
/// The same of a GGUF file's metadata.
void add_chat_info(const Gguf& file, ModelSource& source);

}  // namespace fovea
