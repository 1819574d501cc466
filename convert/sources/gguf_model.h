// A GGUF file as a ModelSource: its metadata is the configuration, its tensors the weights.
#pragma once
#include <filesystem>

#include "convert/weights/model_source.h"
#include "fovea/mapping.h"

namespace fovea {

/// Models of architecture llama, qwen2, qwen3 and gpt2, with the tokenizer if `with_tokenizer` and the file has one.
/// Throws host::Error naming `path`. The result keeps the mapping.
[[nodiscard]] ModelSource read_gguf(const std::filesystem::path& path, Mapping mapping, bool with_tokenizer);

}  // namespace fovea
