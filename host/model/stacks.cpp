#include "host/model/stacks.h"

#include <algorithm>
#include <span>

namespace fovea {

Sides sides_of(const Config& config) noexcept {
    Sides sides{.encodes = config.encoder.n_layers != 0, .decodes = config.decoder.n_layers != 0};
    for (const Block& block : std::span(config.decoder.blocks).first(config.decoder.n_blocks))
        sides.reads_memory |= sides.decodes && block.attention.cross_attention;
    return sides;
}

std::uint32_t heads_of_all(const Stack& stack) noexcept {
    std::uint32_t n_heads = 0;
    for (const Block& block : std::span(stack.blocks).first(stack.n_blocks)) {
        if (n_heads && block.attention.n_heads && block.attention.n_heads != n_heads) return 1;
        if (block.attention.n_heads) n_heads = block.attention.n_heads;
    }
    return std::max(n_heads, 1u);
}

}  // namespace fovea
