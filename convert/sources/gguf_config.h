// A GGUF file's metadata as a configuration.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "convert/formats/gguf.h"
#include "convert/weights/rope.h"
#include "fovea/config.h"

namespace fovea {

struct GgufFamily;

struct GgufConfig {
    Stack stack;                             ///< checked
    std::vector<std::uint8_t> layer_blocks;  ///< what its layer_blocks point into
    bool is_encoder = false;                 ///< else a decoder
    std::array<Rope, kMaxBlocks> ropes;      ///< of each block that rotates
    std::vector<float> slopes;               ///< where positions are ALiBi
    const GgufFamily* family = nullptr;
    std::uint32_t n_relative_buckets = 0;      ///< where positions are relative
    std::vector<std::uint32_t> layer_numbers;  ///< the file's, of each layer; empty: the same
    std::uint32_t n_skipped_layers = 0;        ///< layers of the file behind the stack's, which predict further tokens
    std::vector<std::string> notes;            ///< for the user
    bool usual_names = false;                  ///< the family's own names are not this file's
    std::string name;
};

/// Throws host::Error naming file, key, what was wanted and what was there. Which biases there are and whether the output
/// head is the embedding follows from the tensors' names, as it does for ggml's own programs.
[[nodiscard]] GgufConfig read_gguf_config(const Gguf& file);

}  // namespace fovea
