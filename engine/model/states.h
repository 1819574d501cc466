// What the recurrent layers of a stack remember of a sequence, in bytes.
#pragma once
#include "engine/format/format.h"
#include "engine/format/parts.h"

namespace fovea {

/// Floats of what a convolution remembers, its last n_taps − 1 inputs [n_taps − 1][n_channels], with zeros up to a multiple of 16.
[[nodiscard]] constexpr std::uint64_t kept_inputs(const RecurrentShape& r) noexcept {
    return round_up(std::uint64_t{r.n_taps - 1u} * r.n_channels(), kLanes);
}
/// Panels of 16 columns of a head's state, each [key_dim][16].
[[nodiscard]] constexpr std::uint32_t state_panels(const RecurrentShape& r) noexcept {
    return (r.value_dim + kLanes - 1) / kLanes;
}
/// Bytes of a recurrent part's state in float32, a multiple of 64: what its convolution remembers, then each head's panels.
[[nodiscard]] constexpr std::uint64_t recurrent_state_bytes(const RecurrentShape& r) noexcept {
    const std::uint64_t panels = r.has_states() ? std::uint64_t{r.n_heads} * state_panels(r) : 0;
    return (kept_inputs(r) + panels * r.key_dim * kLanes) * sizeof(float);
}
/// Bytes of one layer's state, all of which its block writes at every token. 0: its block has none.
[[nodiscard]] constexpr std::uint64_t layer_state_bytes(const Stack& stack, const Block& block) noexcept {
    return block.recurrent ? recurrent_state_bytes(stack.recurrent) : 0;
}

/// Bytes of the states of a stack's first n_layers layers, one after the other: where that of layer n_layers starts.
[[nodiscard]] inline std::uint64_t state_bytes(const Stack& stack, std::uint32_t n_layers) noexcept {
    std::uint64_t bytes = 0;
    if (has(Part::states))
        for (std::uint32_t layer = 0; layer < n_layers; ++layer) bytes += layer_state_bytes(stack, stack.block(layer));
    return bytes;
}
[[nodiscard]] inline std::uint64_t state_bytes(const Stack& stack) noexcept {
    return state_bytes(stack, stack.n_layers);
}

}  // namespace fovea
