#include "convert/gguf/settle.h"

#include <algorithm>
#include <cmath>

#include "convert/families/reading.h"

namespace fovea {
namespace {

float number(const Gguf& file, const std::string& key, double otherwise) {
    return static_cast<float>(file.number_or(key, -1e9, 1e9, otherwise));
}

void for_blocks(GgufConfig& config, auto change) {
    for (std::uint32_t i = 0; i < config.stack.n_blocks; ++i) change(config.stack.blocks[i]);
}

/// Windows may have a rotary base of their own.
void read_window_base(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    for (std::uint32_t i = 0; i < config.stack.n_blocks; ++i)
        if (config.stack.blocks[i].attention.window)
            config.ropes[i].base = file.number_or(prefix + "rope.freq_base_swa", 1.01, 1e30, config.ropes[i].base);
}

/// From Gemma 3 on, windows have a rotary base of their own, and no scaling.
void settle_window_rope(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    for (std::uint32_t i = 0; i < config.stack.n_blocks; ++i) {
        Block& b = config.stack.blocks[i];
        if (!b.attention.window) continue;
        config.ropes[i] = {};
        config.ropes[i].base = file.number_or(prefix + "rope.freq_base_swa", 1.01, 1e30, 10000.0);
        b.attention.rope_scale = 1.0f;
    }
}

/// Granite's factors of embeddings, residual rows and logits.
void settle_multipliers(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    config.stack.embedding_scale = number(file, prefix + "embedding_scale", 1.0);
    const float logits = number(file, prefix + "logit_scale", 1.0),
                residual = number(file, prefix + "residual_scale", 1.0);
    if (config.stack.embedding_scale == 0.0f) file.refuse(prefix + "embedding_scale", "other than 0");
    if (logits == 0.0f) file.refuse(prefix + "logit_scale", "other than 0");
    if (residual == 0.0f) file.refuse(prefix + "residual_scale", "other than 0");
    config.stack.logit_scale = 1.0f / logits;
    for_blocks(config, [&](Block& b) { b.residual_scale = residual == 1.0f ? 0.0f : residual; });
}

void leave_out_positions(Block& b) {
    b.attention.position = Position::none;
    b.attention.rotary_dim = 0;
    b.attention.rope_scale = 1.0f;
}

/// How rows choose experts, in a block that has some; the first layer with experts is `first`.
void settle_routing(const Gguf& file, const std::string& prefix, std::uint32_t first, Block& b) {
    constexpr std::uint32_t kSoftmax = 1, kSigmoid = 2, kMostShared = 1u << 10;
    const bool may_choose = prefix != "ernie4_5-moe.";  // which takes the softmax whatever the key says
    constexpr std::string_view kSigmoids[] = {"glm4moe.", "nemotron_h_moe.", "afmoe.", "kimi-linear.", "mimo2."};
    const bool sigmoid = std::find(std::begin(kSigmoids), std::end(kSigmoids), prefix) != std::end(kSigmoids);
    const std::uint32_t gating = file.count_or(prefix + "expert_gating_func", sigmoid ? kSigmoid : kSoftmax);
    if (gating != kSoftmax && (gating != kSigmoid || !may_choose))
        file.refuse(prefix + "expert_gating_func", may_choose ? "1 (softmax) or 2 (sigmoid)" : "1 (softmax)");
    b.experts.router_score = gating == kSigmoid ? RouterScore::sigmoid : RouterScore::softmax;
    b.experts.choice_bias = file.tensors().count("blk." + std::to_string(first) + ".exp_probs_b.bias") != 0;
    const float scale = number(file, prefix + "expert_weights_scale", 1.0);
    b.experts.routed_scale = scale == 1.0f ? 0.0f : scale;
    const std::uint32_t n_shared = file.count_or(prefix + "expert_shared_count", 0);
    if (n_shared > kMostShared) file.refuse(prefix + "expert_shared_count", "at most " + std::to_string(kMostShared));
    b.experts.shared_d_ff = file.count_or(prefix + "expert_shared_feed_forward_length", n_shared * b.feed.d_ff);
    const std::uint32_t n_groups = file.count_or(prefix + "expert_group_count", 0);
    if (n_groups < 2) return;
    if (b.experts.n % n_groups)
        file.refuse(prefix + "expert_group_count", "a divisor of the " + std::to_string(b.experts.n) + " experts");
    const std::uint32_t n_used = file.count(prefix + "expert_group_used_count", 1, n_groups);
    if (n_used < n_groups)
        b.experts.n_groups = static_cast<std::uint16_t>(n_groups),
        b.experts.n_groups_used = static_cast<std::uint16_t>(n_used);
}

/// The first layers' blocks have one feed-forward part for all rows.
void leave_out_experts(Block& b) {
    b.experts.n = b.experts.shared_d_ff = 0;
    b.experts.n_used = b.experts.n_groups = b.experts.n_groups_used = 0;
    b.experts.normalize = b.experts.choice_bias = b.experts.router_bias = b.experts.shared_gate = false;
    b.experts.router_score = RouterScore::softmax;
    b.experts.routed_scale = 0.0f;
}

void split_dense_layers(const Gguf& file, const std::string& prefix, std::uint32_t n_dense, GgufConfig& config) {
    const std::uint32_t d_ff = n_dense ? file.count(prefix + "feed_forward_length") : 0;
    std::vector<LayerShape> layers = gguf_layers(config);
    for (std::uint32_t i = 0; i < n_dense; ++i) {
        Block& b = layers[i].block;
        b.feed.d_ff = d_ff;
        leave_out_experts(b);
    }
    set_gguf_layers(file, prefix + "block_count", layers, config);
}

}  // namespace

void settle_latent(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr std::uint32_t kMostDim = 1u << 16;
    Block& b = config.stack.blocks[0];
    const auto width = [&](const char* own, const char* usual) {
        const std::string key = prefix + (file.has(prefix + own) ? own : usual);
        return file.count(key, 1, kMostDim);
    };
    const std::uint32_t query = width("attention.key_length_mla", "attention.key_length");
    if (file.has(prefix + "attention.q_lora_rank"))
        b.latent.query_rank = file.count(prefix + "attention.q_lora_rank", 1, kMostDim);
    b.attention.rotary_dim = file.count(prefix + "rope.dimension_count", 2, kMostDim);
    if (query <= b.attention.rotary_dim)
        file.refuse(prefix + "rope.dimension_count", "less than a head's " + std::to_string(query));
    b.latent.query_dim = query - b.attention.rotary_dim;
    // Which is a head's share of the model without a key.
    const bool has_value =
        file.has(prefix + "attention.value_length") || file.has(prefix + "attention.value_length_mla");
    b.latent.value_dim =
        has_value ? width("attention.value_length_mla", "attention.value_length") : b.attention.value_head_dim;
    constexpr float kWithin = 1e-6f;  // of the norms within attention, whatever the key says
    b.latent.norm_epsilon = b.norm_epsilon == kWithin ? 0.0f : kWithin;
    b.attention.value_head_dim = file.count(prefix + "attention.kv_lora_rank", 1, kMostDim);
    b.attention.head_dim = b.attention.rotary_dim + b.attention.value_head_dim;
    b.attention.n_kv_heads = 1;
    const Rope& rope = config.ropes[0];
    const double log_multiplier = file.number_or(prefix + "rope.scaling.yarn_log_multiplier", -1e3, 1e3, 0.0);
    const double factor =
        rope.scaling == RopeScaling::yarn ? yarn_attention_factor(rope.factor, 10 * log_multiplier) : 1.0;
    b.attention.softmax_scale = static_cast<float>(factor * factor / std::sqrt(static_cast<double>(query)));
}

std::vector<LayerShape> gguf_layers(const GgufConfig& config) {
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < config.stack.n_layers; ++i) {
        const std::size_t at = config.layer_blocks.empty() ? 0 : config.layer_blocks[i];
        layers.push_back({config.stack.blocks[at], config.ropes[at]});
    }
    return layers;
}

void set_gguf_layers(const Gguf& file, const std::string& key, const std::vector<LayerShape>& layers,
                     GgufConfig& config) {
    const std::vector<LayerShape> shapes = share_blocks(layers, config.layer_blocks);
    if (shapes.empty()) file.refuse(key, "at most " + std::to_string(kMaxBlocks) + " different kinds of layers");
    Stack& stack = config.stack;
    stack.n_blocks = 0;
    for (const LayerShape& shape : shapes) {
        config.ropes[stack.n_blocks] = shape.rope;
        stack.blocks[stack.n_blocks++] = shape.block;
    }
    stack.layer_blocks = config.layer_blocks;
}

void settle_gemma(const Gguf&, const std::string&, GgufConfig& config) {
    config.stack.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.stack.d_model)));
}

void settle_gemma2(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_gemma(file, prefix, config);
    Stack& stack = config.stack;
    const bool is_third = prefix == "gemma3.";
    const bool is_largest = stack.n_layers == (is_third ? 62 : 46);
    const float cap = is_third ? 0.0f : number(file, prefix + "attn_logit_softcapping", 50.0);
    stack.logit_softcap = is_third ? number(file, prefix + "final_logit_softcapping", 0.0)
                                   : number(file, prefix + "final_logit_softcapping", 30.0);
    for_blocks(config, [&](Block& b) {
        b.attention.score_softcap = cap;
        if (is_largest)
            b.attention.softmax_scale = 1.0f / std::sqrt(static_cast<float>(stack.d_model / b.attention.n_heads));
    });
    is_third ? settle_window_rope(file, prefix, config) : read_window_base(file, prefix, config);
}

void settle_gemma4(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr std::uint32_t kMostWidth = 1u << 20;
    settle_gemma(file, prefix, config);
    Stack& stack = config.stack;
    stack.logit_softcap = number(file, prefix + "final_logit_softcapping", 0.0);
    const std::uint32_t n_shared = file.count_or(prefix + "attention.shared_kv_layers", 0);
    if (n_shared >= stack.n_layers)
        file.refuse(prefix + "attention.shared_kv_layers",
                    "fewer than the " + std::to_string(stack.n_layers) + " layers");
    const std::string width = prefix + "embedding_length_per_layer_input";
    const std::uint32_t input_width = file.has(width) ? file.count(width, 0, kMaxInputWidth) : 0;
    const std::uint32_t n_heads = stack.blocks[0].attention.n_heads;
    const std::vector<std::uint32_t> d_ff = file.counts(prefix + "feed_forward_length", stack.n_layers, 1, kMostWidth),
                                     n_kv_heads = file.has(prefix + "attention.head_count_kv")
                                                      ? file.counts(prefix + "attention.head_count_kv", stack.n_layers,
                                                                    1, n_heads)
                                                      : std::vector<std::uint32_t>(stack.n_layers, n_heads);
    Rope windows;
    windows.base = file.number_or(prefix + "rope.freq_base_swa", 1.01, 1e30, 10000.0);
    std::vector<LayerShape> layers = gguf_layers(config);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Block& b = layers[i].block;
        if (b.attention.window) {
            b.attention.head_dim = file.count_or(prefix + "attention.key_length_swa", b.attention.head_dim);
            b.attention.value_head_dim =
                file.count_or(prefix + "attention.value_length_swa", b.attention.value_head_dim);
            b.attention.rotary_dim = file.count_or(prefix + "rope.dimension_count_swa", b.attention.head_dim);
            layers[i].rope = windows;
        }
        (b.experts.n ? b.experts.shared_d_ff : b.feed.d_ff) = d_ff[i];
        b.experts.normalize = b.experts.own_norms = b.experts.n != 0;
        b.attention.n_kv_heads = n_kv_heads[i];
        b.attention.softmax_scale = 1.0f;
        b.inputs.layer_scale = true;
        b.inputs.width = static_cast<std::uint16_t>(input_width);
        b.attention.shared_keys = i >= stack.n_layers - n_shared;
        b.attention.value_norm = !b.attention.shared_keys;
    }
    set_gguf_layers(file, prefix + "feed_forward_length", layers, config);
}

void settle_gemma_embedding(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_gemma(file, prefix, config);
    settle_window_rope(file, prefix, config);
    for_blocks(config, [](Block& b) { b.attention.window = b.attention.window ? b.attention.window / 2 + 1 : 0; });
    for (std::uint32_t i = 0; i < 2; ++i) {
        const auto found = file.tensors().find("dense_" + std::to_string(i + 2) + ".weight");
        if (found == file.tensors().end()) return;
        constexpr std::uint64_t kMost = 1u << 30;  // check() refuses far fewer
        if (found->second.shape.size() != 2) file.refuse("tensor " + found->first, "a matrix");
        config.stack.head[i].width = static_cast<std::uint32_t>(std::min(found->second.shape[0], kMost));
    }
}

void settle_clip(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    const float clip = number(file, prefix + "attention.clamp_kqv", 0.0);
    if (clip < 0.0f) file.refuse(prefix + "attention.clamp_kqv", "a number from 0 on");
    for_blocks(config, [&](Block& b) { b.attention.projection_clip = clip; });
}

void settle_alibi(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_clip(file, prefix, config);
    config.slopes = alibi_slopes(config.stack.blocks[0].attention.n_heads,
                                 file.number_or(prefix + "attention.max_alibi_bias", 1e-3, 1e3, 8.0));
}

void settle_jais(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    (void)file.number(prefix + "attention.max_alibi_bias", 1e-3, 1e3);  // llama.cpp has no slopes without it
    settle_alibi(file, prefix, config);
    for_blocks(config, [](Block& b) { b.attention.softmax_scale = 1.0f / static_cast<float>(b.attention.head_dim); });
}

void settle_baichuan(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr std::uint32_t kTurning = 32, kSloping = 40;
    const std::uint32_t n_layers = config.stack.n_layers;
    if (n_layers != kTurning && n_layers != kSloping) file.refuse(prefix + "block_count", "32 or 40");
    if (n_layers == kTurning) return;
    for_blocks(config, leave_out_positions);
    for_blocks(config, [](Block& b) { b.attention.position = Position::alibi; });
    config.slopes = alibi_slopes(config.stack.blocks[0].attention.n_heads);
}

void settle_bloom(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_alibi(file, prefix, config);
    config.stack.embedding_norm = Norm::layer;
    config.stack.embedding_norm_bias = true;
}

void settle_parallel(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    const FeedForwardShape& feed = config.stack.blocks[0].feed;
    // In StableLM's files a norm of the feed-forward's own tells, whatever the key says.
    const bool parallel =
        prefix == "stablelm." ? bool{feed.shared_norm} : file.flag_or(prefix + "use_parallel_residual", feed.parallel);
    for_blocks(config, [&](Block& b) { b.feed.parallel = parallel, b.feed.shared_norm &= parallel; });
}

void settle_granite(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_multipliers(file, prefix, config);
    // Here this says whether there are positions.
    if (!file.flag_or(prefix + "rope.scaling.finetuned", true)) for_blocks(config, leave_out_positions);
}

void settle_minicpm(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    for (const char* name : {"embedding_scale", "residual_scale", "logit_scale"})
        (void)file.number(prefix + name, -1e9, 1e9);
    settle_multipliers(file, prefix, config);
}

void settle_cohere(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    config.stack.logit_scale = number(file, prefix + "logit_scale", 1.0);
}

void settle_smollm3(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    std::vector<LayerShape> layers = gguf_layers(config);
    for (std::size_t i = 3; i < layers.size(); i += 4) leave_out_positions(layers[i].block);
    set_gguf_layers(file, prefix + "block_count", layers, config);
}

void settle_granite_moe(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_granite(file, prefix, config);
    Block& b = config.stack.blocks[0];
    if (b.experts.n) b.experts.shared_d_ff = file.count_or(prefix + "expert_shared_feed_forward_length", 0);
}

void settle_falcon(const Gguf& file, const std::string&, GgufConfig& config) {
    const bool one_norm = file.tensors().count("blk.0.attn_norm_2.weight") == 0;
    if (one_norm) config.names = {};
    for_blocks(config, [&](Block& b) { b.feed.shared_norm = one_norm; });
}

void settle_olmo2(const Gguf&, const std::string&, GgufConfig& config) {
    for (std::uint32_t i = 0; i < config.stack.n_blocks; ++i) {
        Block& b = config.stack.blocks[i];
        if (!b.attention.window) continue;
        config.ropes[i] = {.base = config.ropes[i].base};
        b.attention.rope_scale = 1.0f;
    }
}

void settle_mistral3(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    if (number(file, prefix + "attention.temperature_scale", 0.0) == 0.0f) return;
    Stack& stack = config.stack;
    const std::uint32_t original = file.count_or(prefix + "rope.scaling.original_context_length", stack.max_positions);
    if (original == 0 || original >= stack.max_positions) return;
    stack.max_positions = original;
    config.notes.push_back(
        "attention.temperature_scale: positions end where it begins to multiply queries; the model has " +
        std::to_string(original) + " positions");
}

void settle_qwen(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    if (config.stack.blocks[0].feed.d_ff % 2) file.refuse(prefix + "feed_forward_length", "an even number");
    for_blocks(config, [](Block& b) { b.feed.d_ff /= 2; });
}

void settle_glm4(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    for (Rope& rope : config.ropes) rope.halves = file.has(prefix + "rope.dimension_sections");
}

void settle_modern_bert(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    Stack& stack = config.stack;
    Block full = stack.blocks[0];
    const std::string activation =
        file.text_or(prefix + "hidden_act", file.text_or(prefix + "hidden_activation", "gelu"));
    if (activation != "gelu" && activation != "silu") file.refuse(prefix + "hidden_act", "gelu or silu");
    if (activation == "silu") full.feed.activation = Activation::silu;
    Block attends = full, feeds = full, local = full;
    attends.feed.d_ff = 0;
    attends.norm = Norm::none;
    attends.norm_bias = attends.feed.gated = attends.feed.up_bias = attends.feed.gate_bias = attends.feed.down_bias =
        false;
    feeds.attention.n_heads = feeds.attention.n_kv_heads = feeds.attention.head_dim = feeds.attention.value_head_dim =
        feeds.attention.rotary_dim = 0;
    feeds.attention.position = Position::none;
    set_biases(feeds.attention, false);
    local.attention.window = file.count_or(prefix + "attention.sliding_window", 0) / 2;
    local.attention.window += local.attention.window ? 1 : 0;
    const std::string pattern = prefix + "attention.sliding_window_pattern";
    const std::uint32_t period = file.has(pattern) ? file.count(pattern) : 3;
    const Rope global = config.ropes[0];
    Rope of_local = global;
    of_local.base = file.number_or(prefix + "rope.freq_base_swa", 1.01, 1e30, 10000.0);
    std::vector<LayerShape> layers = {{attends, global}, {feeds, global}};
    config.layer_numbers = {0, 0};
    for (std::uint32_t i = 1; i < stack.n_layers; ++i) {
        layers.push_back(i % period && local.attention.window ? LayerShape{local, of_local} : LayerShape{full, global});
        config.layer_numbers.push_back(i);
    }
    stack.n_layers += 1;
    set_gguf_layers(file, prefix + "block_count", layers, config);
}

void settle_t5(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr std::uint32_t kMostBuckets = 256, kMaxDistance = 128;
    Block& b = config.stack.blocks[0];
    b.feed.gated = file.tensors().count("enc.blk.0.ffn_gate.weight") != 0;
    b.feed.activation = b.feed.gated ? Activation::gelu_tanh : Activation::relu;
    b.attention.softmax_scale = 1.0f;
    b.attention.position = Position::relative;
    b.attention.relative_max_distance = kMaxDistance;
    const std::string buckets = prefix + "attention.relative_buckets_count";
    config.n_relative_buckets = file.count(buckets, 4, kMostBuckets);
    if (config.n_relative_buckets % 4) file.refuse(buckets, "a multiple of 4");
    if (prefix == "t5.") config.notes.push_back("general.architecture: of T5 the encoder alone is read");
}

bool is_t5_decoder(std::string_view name) {
    return name.starts_with("dec.") || name.starts_with("output.") ||
           (name.starts_with("enc.blk.") && !name.starts_with("enc.blk.0.") && name.ends_with(".attn_rel_b.weight"));
}

void settle_gpt_oss(const Gguf&, const std::string&, GgufConfig& config) {
    for (Rope& rope : config.ropes) rope.truncate = false;
}

void settle_routed(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    Stack& stack = config.stack;
    if (!stack.blocks[0].experts.n) return;
    const std::uint32_t n_dense = std::min(file.count_or(prefix + "leading_dense_block_count", 0), stack.n_layers);
    for_blocks(config, [&](Block& b) { settle_routing(file, prefix, n_dense, b); });
    split_dense_layers(file, prefix, n_dense, config);
}

void settle_mimo2(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    const std::string heads = prefix + "attention.head_count_kv";
    std::vector<LayerShape> layers = gguf_layers(config);
    const std::vector<std::uint32_t> n_heads =
        file.counts(heads, config.stack.n_layers, 1, kMaxHeads, config.n_skipped_layers);
    const auto has = [&](std::size_t layer, const char* name) {
        return file.tensors().count("blk." + std::to_string(layer) + "." + name) != 0;
    };
    std::uint32_t first = 0;  // with experts
    while (first + 1 < layers.size() && !has(first, "ffn_gate_inp.weight")) ++first;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        Block& b = layers[i].block;
        b.attention.n_kv_heads = n_heads[i];
        b.attention.attention_sinks = has(i, "attn_sinks.weight");
        if (b.attention.window)
            layers[i].rope.base = file.number_or(prefix + "rope.freq_base_swa", 1.01, 1e30, layers[i].rope.base);
        if (b.experts.n) settle_routing(file, prefix, first, b);
        if (!b.experts.n || has(i, "ffn_gate_inp.weight")) continue;
        b.feed.d_ff = file.count(prefix + "feed_forward_length");
        leave_out_experts(b);
    }
    set_gguf_layers(file, heads, layers, config);
    if (const float scale = number(file, prefix + "attention.value_scale", 0.0); scale != 0.0f)
        config.factors[Role::attention_output] = scale;
}

void settle_nomic_moe(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    const std::uint32_t every = file.count(prefix + "moe_every_n_layers");
    std::vector<LayerShape> layers = gguf_layers(config);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (i % every == 1) continue;
        Block& b = layers[i].block;
        leave_out_experts(b);
        b.feed.up_bias = file.tensors().count("blk.0.ffn_up.bias") != 0;
        b.feed.down_bias = file.tensors().count("blk.0.ffn_down.bias") != 0;
    }
    set_gguf_layers(file, prefix + "moe_every_n_layers", layers, config);
}

void settle_deepseek(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_latent(file, prefix, config);
    settle_routed(file, prefix, config);
}

void settle_ernie_moe(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    const std::string step = prefix + "interleave_moe_layer_step";
    if (file.count_or(step, 1) != 1) file.refuse(step, "1");
    settle_routed(file, prefix, config);
}

void settle_exaone_moe(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    static_cast<void>(file.count(prefix + "attention.sliding_window"));  // in a window of 0 llama.cpp shows nothing
    read_window_base(file, prefix, config);
    settle_routed(file, prefix, config);
}

}  // namespace fovea
