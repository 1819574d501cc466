// What sentence-transformers puts before texts, by a name for each task.
#pragma once
#include <filesystem>

#include "convert/weights/model_source.h"

namespace fovea {

/// Keeps the prompts of a folder that has a modules.json, and the name of the one that is used unasked, as "prompts" and
/// "default_prompt" of the model's info. Throws host::Error.
void add_prompts(const std::filesystem::path& folder, ModelSource& source);

}  // namespace fovea
