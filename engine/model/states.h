// What the recurrent layers of a stack remember of a sequence, in bytes.
#pragma once
#include "engine/format/format.h"
#include "engine/format/parts.h"

namespace fovea {

/// Bytes of one layer's state in float32: a multiple of 64, all of which its block writes at every token. 0: its block has none,
/// as no block of today has.
[[nodiscard]] constexpr std::uint64_t layer_state_bytes(const Block&) noexcept { return 0; }

/// Bytes of the states of a stack's first n_layers layers, one after the other: where that of layer n_layers starts.
[[nodiscard]] inline std::uint64_t state_bytes(const Stack& stack, std::uint32_t n_layers) noexcept {
    std::uint64_t bytes = 0;
    if (has(Part::states))
        for (std::uint32_t layer = 0; layer < n_layers; ++layer) bytes += layer_state_bytes(stack.block(layer));
    return bytes;
}
[[nodiscard]] inline std::uint64_t state_bytes(const Stack& stack) noexcept {
    return state_bytes(stack, stack.n_layers);
}

}  // namespace fovea
