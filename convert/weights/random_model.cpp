#include "convert/weights/random_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "convert/weights/mel_filters.h"
#include "convert/weights/rope.h"

namespace fovea {
namespace {

/// A number in [−1, 1) for every (key, index): the finalizer of SplitMix64 (Steele et al. 2014) over a counter.
float uniform(std::uint64_t key, std::uint64_t index) {
    std::uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<float>(static_cast<std::int32_t>(z >> 32)) * 0x1p-31f;
}

/// The matrix's rows that are padding are zero, as in a converted file.
bool is_padding(const Stack& stack, const Block& block, const TensorSpec& spec, std::uint32_t row) {
    switch (spec.role) {
        case Role::up:
        case Role::up_bias: return block.feed.gated && up_row(row).row >= block.feed.d_ff;
        case Role::shared_up: return block.feed.gated && up_row(row).row >= block.experts.shared_d_ff;
        case Role::expert_up:
        case Role::expert_up_bias:
            row %= expert_up_rows(block);
            return (block.feed.gated ? up_row(row).row : row) >= block.feed.d_ff;
        case Role::expert_down:
        case Role::expert_down_bias: return row % expert_down_rows(stack) >= stack.d_model;
        case Role::latent_query: return row % latent_query_rows(block) >= block.attention.value_head_dim;
        case Role::latent_value: return row % latent_value_rows(block) >= block.latent.value_dim;
        case Role::distance_keys:
        case Role::distance_queries: return row % bucket_rows(block) >= block.attention.relative_buckets;
        default: return false;
    }
}

void read_random(const Config& config, std::uint64_t seed, const TensorSpec& spec, std::uint32_t row_begin,
                 std::uint32_t n_rows, float* out) {
    const Stack& stack = spec.stack == StackIndex::encoder ? config.encoder : config.decoder;
    if (spec.role == Role::rope_frequencies) {
        const std::vector<float> frequencies = rope_frequencies({}, stack.blocks[spec.layer].attention.rotary_dim);
        const std::size_t n = frequencies.size();
        for (std::size_t i = 0; i < spec.n_cols; ++i) out[i] = frequencies[i % n] / static_cast<float>(1 + i / n);
        return;
    }
    if (spec.role == Role::distance_buckets) {  // as even as they go
        const std::uint64_t n = stack.block(spec.layer).attention.relative_buckets;
        for (std::uint32_t i = 0; i < spec.n_cols; ++i) out[i] = static_cast<float>(i * n / spec.n_cols);
        return;
    }
    if (spec.role == Role::mel_filters) {
        const std::vector<float> filters = mel_filters(stack.sound);
        std::copy(filters.begin(), filters.end(), out);
        return;
    }
    const Block& block = stack.block(spec.role < Role::attention_norm ? 0 : spec.layer);
    const std::uint64_t key = seed * 0xd1342543de82ef95u + (static_cast<std::uint64_t>(spec.role) << 48) +
                              (static_cast<std::uint64_t>(spec.stack) << 40) + spec.layer;
    const bool vector = spec.layout == Layout::vector;
    if (is_columns(spec.role)) {  // powers of two from 1/8 to 8; a tied table is looked up too, and has ones
        const bool tied = spec.role == Role::output_columns && stack.tied_output;
        for (std::uint32_t c = 0; c < spec.n_cols; ++c)
            out[c] = tied
                         ? 1.0f
                         : std::ldexp(
                               1.0f, static_cast<int>(std::floor(3.5f * uniform(key * 0x9e3779b97f4a7c15u, c) + 0.5f)));
        return;
    }
    const bool around_one = is_norm_weight(spec.role) || spec.role == Role::layer_scale;
    const float centre = around_one ? 1.0f : spec.role == Role::recurrent_decay ? -1.0f : 0.0f;
    const float spread = vector ? 0.05f : std::sqrt(3.0f / static_cast<float>(spec.n_cols));
    for (std::uint32_t r = 0; r < n_rows; ++r)
        for (std::uint32_t c = 0; c < spec.n_cols; ++c) {
            const std::uint64_t index = std::uint64_t{row_begin + r} * spec.n_cols + c;
            const bool padding = is_padding(stack, block, spec, vector ? c : row_begin + r);
            *out++ = padding ? 0.0f : centre + spread * uniform(key * 0x9e3779b97f4a7c15u, index);
        }
}

}  // namespace

ModelSource random_model(const Config& config, std::uint64_t seed) {
    ModelSource source;
    source.config = config;
    Stack* stacks[] = {&source.config.encoder, &source.config.decoder};
    for (std::size_t i = 0; i < 2; ++i) {
        source.layer_blocks[i].assign(stacks[i]->layer_blocks.begin(), stacks[i]->layer_blocks.end());
        stacks[i]->layer_blocks = source.layer_blocks[i];
    }
    source.info = {{"name", "random"}, {"architecture", "random"}, {"source_type", "f32"}};
    source.read_rows = [config = source.config, seed](const TensorSpec& spec, std::uint32_t row_begin,
                                                      std::uint32_t n_rows, float* out) {
        read_random(config, seed, spec, row_begin, n_rows, out);
    };
    return source;
}

}  // namespace fovea
