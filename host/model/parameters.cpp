#include "host/model/parameters.h"

#include "engine/format/format.h"
#include "host/model/stacks.h"

namespace fovea {
namespace {

/// One tensor's place in the count. Padding is not a parameter, nor are rotary positions' frequencies, filters and column scales.
void count_tensor(const Stack& s, const TensorSpec& t, ParameterCount& count) {
    const Block& b = s.block(t.role < Role::attention_norm ? 0 : t.layer);  // else layer is a block's or map's number
    const std::uint64_t size = std::uint64_t{t.n_rows} * t.n_cols;
    if (is_columns(t.role)) return;
    switch (t.role) {
        case Role::mel_filters:
        case Role::rope_frequencies: return;
        case Role::first_convolution:
        case Role::second_convolution:
        case Role::layer_embedding:
        case Role::embedding_map:
        case Role::token_embedding:
        case Role::position_embedding:
        case Role::type_embedding: count.embedding += size; return;
        case Role::head_map:
        case Role::output: count.output += size; return;
        case Role::up: count.feed_forward += std::uint64_t{b.feed.d_ff} * s.d_model * (b.feed.gated ? 2 : 1); return;
        case Role::expert_up:
        case Role::expert_down: {
            const std::uint64_t expert =
                std::uint64_t{b.feed.d_ff} * s.d_model * (b.feed.gated && t.role == Role::expert_up ? 2 : 1);
            count.feed_forward += b.experts.n * expert;
            count.idle_experts += (b.experts.n - b.experts.n_used) * expert;
            return;
        }
        case Role::shared_up:
            count.feed_forward += std::uint64_t{b.experts.shared_d_ff} * s.d_model * (b.feed.gated ? 2 : 1);
            return;
        case Role::latent_query:
            count.attention += std::uint64_t{b.attention.n_heads} * b.attention.value_head_dim * b.latent.query_dim;
            return;
        case Role::latent_value:
            count.attention += std::uint64_t{b.attention.n_heads} * b.attention.value_head_dim * b.latent.value_dim;
            return;
        case Role::layer_input_map:
        case Role::layer_gate:
        case Role::layer_output:
        case Role::router:
        case Role::shared_gate:
        case Role::shared_down:
        case Role::down: count.feed_forward += size; return;
        case Role::expert_up_bias:
            count.biases_and_norms += std::uint64_t{b.experts.n} * b.feed.d_ff * (b.feed.up_bias + b.feed.gate_bias);
            return;
        case Role::expert_down_bias: count.biases_and_norms += std::uint64_t{b.experts.n} * s.d_model; return;
        case Role::up_bias:
            count.biases_and_norms += std::uint64_t{b.feed.d_ff} * (b.feed.up_bias + b.feed.gate_bias);
            return;
        default:
            if (t.layout == Layout::panels && t.role >= Role::recurrent_norm) {
                count.recurrent += size;
                return;
            }
            (t.layout == Layout::panels ? count.attention : count.biases_and_norms) += size;
    }
}

void count_stack(const Stack& s, StackIndex index, ParameterCount& count) {
    for_each_tensor(s, index, [&](const TensorSpec& t) { count_tensor(s, t, count); });
}

void count_first_layer(const Stack& s, ParameterCount& count) {
    const AttentionShape& b = s.block(0).attention;
    count.unfactored_value = std::uint64_t{s.d_model} * s.d_model;
    ParameterCount layer;
    for_each_layer_tensor(s, StackIndex::decoder, 0, [&](const TensorSpec& t) { count_tensor(s, t, layer); });
    count.layer_attention = layer.attention;
    count.layer_feed_forward = layer.feed_forward;
    if (b.n_heads == 0) return;
    count.query_head = std::uint64_t{b.head_dim} * or_else(b.query_width, s.d_model);
    count.key_head = std::uint64_t{b.head_dim} * or_else(b.key_width, s.d_model);
    count.value_head = std::uint64_t{b.value_head_dim} * or_else(b.value_width, s.d_model);
    if (b.has_output_map) count.output_head = std::uint64_t{b.value_head_dim} * or_else(b.output_width, s.d_model);
    count.head = count.query_head + count.key_head + count.value_head + count.output_head;
}

}  // namespace

ParameterCount count_parameters(const Config& config) noexcept {
    ParameterCount count;
    if (config.encoder.n_layers) count_stack(config.encoder, StackIndex::encoder, count);
    if (config.decoder.n_layers) count_stack(config.decoder, StackIndex::decoder, count);
    count_first_layer(output_stack(config), count);
    count.total = count.attention + count.recurrent + count.feed_forward + count.embedding + count.output +
                  count.biases_and_norms;
    return count;
}

}  // namespace fovea
