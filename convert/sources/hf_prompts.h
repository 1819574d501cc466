// What sentence-transformers puts before texts, by a name for each task.
#pragma once
#include <filesystem>

#include "convert/weights/model_source.h"

namespace fovea {

/// Keeps what a folder that has a modules.json says of texts and vectors, in the model's info: "prompts", and the name of the one
/// that is used unasked, "default_prompt"; "include_prompt", where pooling leaves prompts out; "truncate_dim" and "similarity". `kind`: of the folder's model, as its
/// configuration says. Throws host::Error.
void add_prompts(const std::filesystem::path& folder, const char* kind, ModelSource& source);

}  // namespace fovea
