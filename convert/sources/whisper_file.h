// Whisper models that are one file: OpenAI's own checkpoints and whisper.cpp's.
#pragma once
#include <filesystem>
#include <string>

#include "convert/formats/torch_pickle.h"
#include "convert/tokenizers/tokenizer_json.h"
#include "convert/weights/model_source.h"

namespace fovea {

[[nodiscard]] bool is_openai_whisper(const TorchCheckpoint& checkpoint);

/// Reads the checkpoint, which has sizes and tensors. The tokens are in a .tiktoken file of the package openai-whisper: `tokens`, or
/// the one beside `path`; with neither there is a note and no tokenizer. Throws host::Error.
[[nodiscard]] ModelSource read_openai_whisper(const std::filesystem::path& path, TorchCheckpoint checkpoint,
                                              std::filesystem::path tokens);

/// Reads whisper.cpp's file, which has the tokens too. Throws host::Error.
[[nodiscard]] ModelSource read_ggml_whisper_file(const std::filesystem::path& path, Mapping mapping);

}  // namespace fovea
