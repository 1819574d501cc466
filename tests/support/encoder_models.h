// Configurations of encoders and decoders of vectors.
#pragma once
#include <random>
#include <vector>

#include "fovea/config.h"

namespace fovea::testing {

/// BERT's shape: ids, token types, learned positions, norms after, pooled.
inline Config bert_config() {
    Config config;
    Stack& s = config.encoder;
    s.n_layers = 2;
    s.d_model = 40;
    s.vocab_size = 60;
    s.max_positions = 70;
    s.n_token_types = 2;
    s.n_blocks = 1;
    s.position = Position::learned;
    s.embedding_norm = Norm::layer;
    s.embedding_norm_bias = true;
    Block& b = s.blocks[0];
    b.attention.n_heads = b.attention.n_kv_heads = 5;
    b.attention.head_dim = b.attention.value_head_dim = 8;
    b.feed.d_ff = 100;
    b.norm = Norm::layer;
    b.norm_place = NormPlace::post;
    b.norm_bias = true;
    b.feed.activation = Activation::gelu;
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = b.attention.output_bias = b.feed.up_bias =
        b.feed.down_bias = true;
    return config;
}

/// The same with disentangled positions.
inline Config disentangled_config(std::uint16_t n_buckets, std::uint32_t most, std::uint32_t n_layers = 2) {
    Config config = bert_config();
    config.encoder.n_layers = n_layers;
    AttentionShape& b = config.encoder.blocks[0].attention;
    b.position = Position::disentangled;
    b.relative_buckets = n_buckets;
    b.relative_max_distance = most;
    b.softmax_scale = 0.2f;
    return config;
}

/// An encoder and a decoder of vectors.
inline Config both_config(NormPlace place) {
    Config config = bert_config();
    Stack& s = config.encoder;
    s.vocab_size = s.max_positions = s.n_token_types = 0;
    s.position = Position::none;
    s.embedding_norm = Norm::none;
    s.embedding_norm_bias = false;
    s.final_norm = Norm::layer;
    s.final_norm_bias = true;
    s.blocks[0].norm_place = place;
    config.decoder = s;
    config.decoder.blocks[0].attention.cross_attention = true;
    config.decoder.n_layers = 3;
    return config;
}

/// An encoder of vectors, or none, and a decoder of text with a window in one of its kinds of block.
inline Config text_config(bool encodes, NormPlace place = NormPlace::pre) {
    Config config = both_config(place);
    if (!encodes) config.encoder = {};
    Stack& s = config.decoder;
    s.vocab_size = 71;
    s.max_positions = 90;
    s.position = Position::learned;
    s.has_output_head = true;
    s.n_blocks = 2;
    s.blocks[0].attention.causal = true;
    s.blocks[1] = s.blocks[0];
    s.blocks[1].attention.cross_attention = false;
    s.blocks[1].attention.window = 7;
    static constexpr std::uint8_t kLayers[] = {0, 1, 0};
    s.layer_blocks = kLayers;
    return config;
}

/// The same with an encoder that hears.
inline Config sound_config(std::uint32_t n_mels = 11, std::uint32_t n_frames = 80) {
    Config config = text_config(true);
    Stack& s = config.encoder;
    s.sound = {.sample_rate = 8000, .n_fft = 30, .hop_length = 12, .n_mels = n_mels, .n_frames = n_frames};
    s.position = Position::learned;
    s.max_positions = n_frames / 2;
    return config;
}

inline std::vector<float> some_floats(std::size_t n, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31f;
    return x;
}

}  // namespace fovea::testing
