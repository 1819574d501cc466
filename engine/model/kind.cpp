#include "engine/model/kind.h"

namespace fovea {

bool has_relative_positions(const Stack& s) noexcept {
    bool any = false;
    for (std::uint32_t i = 0; i < s.n_blocks; ++i)
        any |= s.n_layers && s.blocks[i].attention.position == Position::relative;
    return any;
}

bool reads_memory(const Config& config) noexcept {
    if (!has(Part::vectors)) return false;
    bool reads = false;
    for (std::uint32_t i = 0; i < config.decoder.n_blocks; ++i)
        reads |= config.decoder.n_layers && config.decoder.blocks[i].attention.cross_attention;
    return reads;
}

bool steps_with_memory(const Config& config) noexcept {
    if (!has(Part::vectors)) return false;
    const Stack& s = config.decoder;
    bool steps =
        reads_memory(config) && s.vocab_size && s.has_output_head && !s.n_head_maps() && s.pooling == Pooling::none;
    for (std::uint32_t i = 0; i < s.n_blocks; ++i)
        steps &= !s.blocks[i].attention.n_heads || s.blocks[i].attention.causal;
    return steps;
}

Kind kind_of(const Config& config) noexcept {
    const Stack& last = stack_of(config, last_stack(config));
    const Block& b = last.blocks[0];
    const bool one_stack = !config.encoder.n_layers || !config.decoder.n_layers;
    if (one_stack && last.n_layers == 1 && !b.feed.d_ff && b.norm == Norm::none && !b.attention.cross_attention &&
        !last.vocab_size && last.position == Position::none && last.embedding_norm == Norm::none &&
        last.final_norm == Norm::none && last.pooling == Pooling::none && b.attention.position == Position::none &&
        !last.n_head_maps() && !last.sound.is_speech())
        return Kind::attend;
    const bool decodes =
        one_stack && config.decoder.n_layers && !reads_memory(config) && last.vocab_size && last.has_output_head;
    return decodes ? Kind::decode : Kind::encode;
}

std::uint32_t key_layer(const Stack& s, std::uint32_t layer) noexcept {
    const Block& b = s.block(layer);
    if (!has(Part::layer_inputs) || !b.attention.shared_keys) return layer;
    for (std::uint32_t i = layer; i-- > 0;) {
        const Block& other = s.block(i);
        if (other.attention.n_heads && !other.attention.shared_keys &&
            other.attention.n_kv_heads == b.attention.n_kv_heads && other.attention.head_dim == b.attention.head_dim &&
            other.attention.value_head_dim == b.attention.value_head_dim &&
            other.attention.window == b.attention.window)
            return i;
    }
    return s.n_layers;
}

}  // namespace fovea
