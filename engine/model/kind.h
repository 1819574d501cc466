// What a configuration means for whoever runs it.
#pragma once
#include "engine/format/format.h"

namespace fovea {

/// Whether a stack has layers whose scores depend on how far keys are from their query.
[[nodiscard]] bool has_relative_positions(const Stack& stack) noexcept;

/// Whether the decoder has layers that attend to a memory.
[[nodiscard]] bool reads_memory(const Config& config) noexcept;

/// Whether that decoder also gives logits token by token, by forward.
[[nodiscard]] bool steps_with_memory(const Config& config) noexcept;

/// What a model is run by.
enum class Kind : std::uint8_t { decode, encode, attend };
[[nodiscard]] Kind kind_of(const Config& config) noexcept;
/// The stack that is run, or runs last.
[[nodiscard]] inline StackIndex last_stack(const Config& config) noexcept {
    return config.decoder.n_layers ? StackIndex::decoder : StackIndex::encoder;
}
[[nodiscard]] inline const Stack& stack_of(const Config& config, StackIndex index) noexcept {
    return index == StackIndex::encoder ? config.encoder : config.decoder;
}

/// Layers of both stacks.
[[nodiscard]] constexpr std::uint64_t n_layers_of(const Config& config) noexcept {
    return std::uint64_t{config.encoder.n_layers} + config.decoder.n_layers;
}

/// The layer whose keys and values a layer of a stack reads: itself, or the last one before it that makes its own for heads and a
/// window like its; n_layers where there is none.
[[nodiscard]] std::uint32_t key_layer(const Stack& s, std::uint32_t layer) noexcept;

}  // namespace fovea
