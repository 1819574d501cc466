#include "engine/model/kind.h"

namespace fovea {

bool has_relative_positions(const Stack& s) noexcept {
    bool any = false;
    for (const Block& b : s.used_blocks()) any |= b.attention.position == Position::relative;
    return any;
}

bool reads_memory(const Config& config) noexcept {
    if (!has(Part::vectors)) return false;
    bool reads = false;
    for (const Block& b : config.decoder.used_blocks()) reads |= b.attention.cross_attention;
    return reads;
}

bool steps_with_memory(const Config& config) noexcept {
    if (!has(Part::vectors)) return false;
    const Stack& s = config.decoder;
    bool steps =
        reads_memory(config) && s.vocab_size && s.has_output_head && !s.n_head_maps() && s.pooling == Pooling::none;
    for (const Block& b : s.used_blocks()) steps &= !b.attention.n_heads || b.attention.causal;
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
    const AttentionShape& b = s.block(layer).attention;
    if (!has(Part::layer_inputs) || !b.shared_keys) return layer;
    for (std::uint32_t i = layer; i-- > 0;) {
        const AttentionShape& other = s.block(i).attention;
        if (other.n_heads && !other.shared_keys && other.n_kv_heads == b.n_kv_heads && other.head_dim == b.head_dim &&
            other.value_head_dim == b.value_head_dim && other.window == b.window && other.chunked == b.chunked)
            return i;
    }
    return s.n_layers;
}

}  // namespace fovea
