// A GGUF file's metadata as a configuration.
#pragma once
#include <string>

#include "convert/gguf.h"
#include "convert/rope.h"
#include "fovea/config.h"

namespace fovea {

struct GgufConfig {
    Stack stack;              ///< of one block; checked
    bool is_encoder = false;  ///< else a decoder
    Rope rope;
    bool rotates_halves = false;  ///< dim i turns with dim i + rotary_dim / 2; else adjacent dims, as in a Fovea file
    std::string name;
};

/// Throws Refusal naming file, key, what was wanted and what was there. Which biases there are and whether the output
/// head is the embedding follows from the tensors' names, as it does for ggml's own programs.
[[nodiscard]] GgufConfig read_gguf_config(const Gguf& file);

}  // namespace fovea
