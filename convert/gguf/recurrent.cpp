// GGUF's models with recurrent layers: what a row of architectures.cpp cannot say.
#include "convert/families/recurrent.h"
#include "convert/gguf/names.h"
#include "convert/gguf/settle.h"

namespace fovea {
namespace {

/// Which layers are recurrent: those without key-value heads.
void set_recurrent_layers(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    const std::string key = prefix + "attention.head_count_kv";
    std::vector<LayerShape> layers = gguf_layers(config);
    const std::vector<std::uint32_t> n_heads =
        file.counts(key, static_cast<std::uint32_t>(layers.size()), 0, kMaxHeads, config.n_skipped_layers);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (n_heads[i] == 0)
            layers[i] = {recurrent_block(layers[i].block), {}, {}};
        else if (!config.family->latent)  // whose keys all heads share
            layers[i].block.attention.n_kv_heads = n_heads[i];
    }
    set_gguf_layers(file, key, layers, config);
}

/// Sizes of a recurrent part with states.
RecurrentShape read_states(const Gguf& file, const std::string& prefix, Recurrence kind) {
    const std::uint32_t width = file.count(prefix + "ssm.inner_size", 1, kMaxMerged);
    RecurrentShape r{.n_heads = file.count(prefix + "ssm.time_step_rank", 1, kMaxHeads),
                     .n_key_heads = file.count(prefix + "ssm.group_count", 1, kMaxHeads),
                     .key_dim = file.count(prefix + "ssm.state_size", 1, kMaxWidth),
                     .kind = kind,
                     .n_taps = static_cast<std::uint8_t>(file.count(prefix + "ssm.conv_kernel", 1, kMaxTaps))};
    if (r.n_heads % r.n_key_heads)
        file.refuse(prefix + "ssm.time_step_rank", "a multiple of " + std::to_string(r.n_key_heads));
    if (width % r.n_heads) file.refuse(prefix + "ssm.inner_size", "a multiple of " + std::to_string(r.n_heads));
    r.value_dim = width / r.n_heads;
    return r;
}

bool has_tensor(const Gguf& file, std::size_t layer, const char* name) {
    return file.tensors().count("blk." + std::to_string(layer) + "." + name) != 0;
}
/// In any layer.
bool has_tensor(const Gguf& file, const GgufConfig& config, const char* name) {
    for (std::uint32_t i = 0; i < config.stack.n_layers; ++i)
        if (has_tensor(file, i, name)) return true;
    return false;
}

/// Mamba-2's recurrent part.
void read_mamba2(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    RecurrentShape& r = config.stack.recurrent;
    r = read_states(file, prefix, Recurrence::state_space);
    r.gate_first = true;
    r.n_norm_groups = r.n_key_heads;
    r.kernel_bias = has_tensor(file, config, "ssm_conv1d.bias");
    config.recurrent_rows = {{{Role::recurrent_gate, Role::recurrent_value, Role::recurrent_key, Role::recurrent_query,
                               Role::recurrent_step}}};
}

/// Mamba's.
void read_selective(const Gguf& file, const std::string& prefix, bool norms, GgufConfig& config) {
    config.stack.recurrent = {
        .n_heads = 1,
        .n_key_heads = 1,
        .key_dim = file.count(prefix + "ssm.state_size", 1, kMaxWidth),
        .value_dim = file.count(prefix + "ssm.inner_size", 1, kMaxWidth),
        .kind = Recurrence::selective,
        .n_taps = static_cast<std::uint8_t>(file.count(prefix + "ssm.conv_kernel", 1, kMaxTaps)),
        .kernel_bias = has_tensor(file, config, "ssm_conv1d.bias"),
        .step_rank = file.count(prefix + "ssm.time_step_rank", 1, kMaxWidth),
        .inner_norm_epsilon = norms ? config.stack.final_norm_epsilon : 0.0f,
    };
    config.recurrent_rows = {{{Role::recurrent_value, Role::recurrent_gate}},
                             {{Role::recurrent_step_down, Role::recurrent_key, Role::recurrent_query}}};
}

}  // namespace

void settle_lfm2(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    Stack& stack = config.stack;
    stack.recurrent = {.n_heads = 1,
                       .n_key_heads = 1,
                       .key_dim = stack.d_model,
                       .value_dim = stack.d_model,
                       .kind = Recurrence::convolution,
                       .n_taps = static_cast<std::uint8_t>(file.count(prefix + "shortconv.l_cache", 2, kMaxTaps))};
    config.recurrent_rows = {{{Role::recurrent_key, Role::recurrent_query, Role::recurrent_value}}};
    settle_routed(file, prefix, config);
    set_recurrent_layers(file, prefix, config);
}

void settle_granite_hybrid(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_granite_moe(file, prefix, config);
    read_mamba2(file, prefix, config);
    set_recurrent_layers(file, prefix, config);
}

void settle_mamba2(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    read_mamba2(file, prefix, config);
    config.stack.blocks[0] = recurrent_block(config.stack.blocks[0]);
}

void settle_falcon_h1(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    read_mamba2(file, prefix, config);
    RecurrentShape& r = config.stack.recurrent;
    if (!has_tensor(file, config, "ssm_norm.weight")) r.gate_first = false, r.n_norm_groups = 0;
    config.stack.blocks[0].recurrent = true;
}

void settle_mamba(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    read_selective(file, prefix, file.flag_or(prefix + "ssm.dt_b_c_rms", false), config);
    config.stack.blocks[0] = recurrent_block(config.stack.blocks[0]);
}

void settle_jamba(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    read_selective(file, prefix, has_tensor(file, config, "ssm_dt_norm.weight"), config);
    std::vector<LayerShape> layers = gguf_layers(config);
    for (std::size_t i = 0; i < layers.size(); ++i)
        if (!has_tensor(file, i, "ffn_gate_inp.weight")) layers[i].block.experts = {};
    set_gguf_layers(file, prefix + "expert_count", layers, config);
    set_recurrent_layers(file, prefix, config);
}

void settle_nemotron_h(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    read_mamba2(file, prefix, config);
    settle_routed(file, prefix, config);
    std::vector<LayerShape> layers = gguf_layers(config);
    const auto n_layers = static_cast<std::uint32_t>(layers.size());
    const auto counts = [&](const char* key, std::uint32_t most) {
        return file.counts(prefix + key, n_layers, 0, most);
    };
    const std::vector<std::uint32_t> n_heads = counts("attention.head_count_kv", kMaxHeads),
                                     d_ff = counts("feed_forward_length", kMaxWidth);
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        Block& b = layers[i].block;
        if (d_ff[i]) {
            b.attention = {.causal = true};
            if (!b.experts.n) b.feed.d_ff = d_ff[i];
            b.feed.up_bias = has_tensor(file, i, "ffn_up.bias");
            b.feed.down_bias = has_tensor(file, i, "ffn_down.bias");
            b.experts.choice_bias = has_tensor(file, i, "exp_probs_b.bias");
            continue;
        }
        b.feed = {}, b.experts = {};
        if (n_heads[i])
            b.attention.n_kv_heads = n_heads[i];
        else
            b = recurrent_block(b);
    }
    set_gguf_layers(file, prefix + "feed_forward_length", layers, config);
}

void settle_qwen35(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    RecurrentShape& r = config.stack.recurrent;
    r = read_states(file, prefix, Recurrence::delta);
    r.n_norm_groups = r.n_heads;
    r.shared_norm = true;
    r.keys_in_turn = r.n_heads != r.n_key_heads;
    config.recurrent_rows = {{{Role::recurrent_query, Role::recurrent_key, Role::recurrent_value}}};
    const std::uint32_t period = file.count_or(prefix + "full_attention_interval", 4);
    std::vector<LayerShape> layers = gguf_layers(config);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        AttentionShape& a = layers[i].block.attention;
        a.query_key_norm = Norm::rms;
        a.output_gate = OutputGate::sigmoid;
        if (period == 0 || (i + 1) % period) layers[i] = {recurrent_block(layers[i].block), {}, {}};
    }
    set_gguf_layers(file, prefix + "full_attention_interval", layers, config);
}

void settle_kimi_linear(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    Stack& stack = config.stack;
    const std::uint32_t n_heads = stack.blocks[0].attention.n_heads,
                        dim = file.count(prefix + "kda.head_dim", 1, kMaxWidth);
    stack.recurrent = {.n_heads = n_heads,
                       .n_key_heads = n_heads,
                       .key_dim = dim,
                       .value_dim = dim,
                       .n_norm_groups = n_heads,
                       .kind = Recurrence::delta_by_dim,
                       .n_taps = static_cast<std::uint8_t>(file.count(prefix + "ssm.conv_kernel", 1, kMaxTaps)),
                       .shared_norm = true,
                       .step_rank = dim,
                       .sigmoid_gate = true};
    config.recurrent_rows = {{{Role::recurrent_query, Role::recurrent_key, Role::recurrent_value}}};
    settle_latent(file, prefix, config);
    stack.blocks[0].attention.rope_scale = 1.0f;
    config.ropes[0] = {.scaling = RopeScaling::proportional, .share = 0.0, .halves = false};
    settle_routed(file, prefix, config);
    set_recurrent_layers(file, prefix, config);
}

void settle_qwen3_next(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_qwen35(file, prefix, config);
    config.stack.recurrent.keys_in_turn = false;
    config.recurrent_rows.push_back({{Role::recurrent_rate, Role::recurrent_step}, true});
    if (!has_tensor(file, config, "ssm_in.weight")) return;
    config.names = kOlderQwenNext;
    config.recurrent_rows[0] = {
        {Role::recurrent_query, Role::recurrent_key, Role::recurrent_value, Role::recurrent_gate}, true};
}

}  // namespace fovea
