// A GGUF file's metadata as a configuration.
#pragma once
#include "convert/gguf/architectures.h"

namespace fovea {

/// Throws host::Error naming file, key, what was wanted and what was there. Which biases there are and whether the output
/// head is the embedding follows from the tensors' names, as it does for ggml's own programs.
[[nodiscard]] GgufConfig read_gguf_config(const Gguf& file);

}  // namespace fovea
