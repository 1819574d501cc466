// A configuration's stacks: which one is meant, and what they read.
#pragma once
#include <cstdint>

#include "fovea/config.h"

namespace fovea {

/// The stack that reads what a caller gives: the encoder, or a decoder alone.
[[nodiscard]] inline const Stack& input_stack(const Config& config) noexcept {
    return config.encoder.n_layers ? config.encoder : config.decoder;
}
/// The stack whose result a caller gets: the decoder, or an encoder alone.
[[nodiscard]] inline const Stack& output_stack(const Config& config) noexcept {
    return config.decoder.n_layers ? config.decoder : config.encoder;
}

/// The sides of a call: an encoder reads a source, a decoder a target, and layers with cross-attention a memory.
struct Sides {
    bool encodes = false, decodes = false, reads_memory = false;
};
[[nodiscard]] Sides sides_of(const Config& config) noexcept;

/// How many heads every attention of a stack has; 1 where layers differ, so that no mask tells heads apart.
[[nodiscard]] std::uint32_t heads_of_all(const Stack& stack) noexcept;

}  // namespace fovea
