#include "convert/families/gguf.h"

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

void settle_gemma(const Gguf&, const std::string&, GgufConfig& config) {
    config.stack.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.stack.d_model)));
}

/// From Gemma 3 on, windows have a rotary base of their own, and no scaling.
void settle_window_rope(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    for (std::uint32_t i = 0; i < config.stack.n_blocks; ++i) {
        Block& b = config.stack.blocks[i];
        if (!b.window) continue;
        config.ropes[i] = {};
        config.ropes[i].base = file.number_or(prefix + "rope.freq_base_swa", 1.01, 1e30, 10000.0);
        b.rope_scale = 1.0f;
    }
}

/// The largest of Gemma 2 and 3 scale scores by another width than a head's.
void settle_gemma2(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_gemma(file, prefix, config);
    Stack& stack = config.stack;
    const bool is_third = prefix == "gemma3.";
    const bool is_largest = stack.n_layers == (is_third ? 62 : 46);
    const float cap = is_third ? 0.0f : number(file, prefix + "attn_logit_softcapping", 50.0);
    stack.logit_softcap = is_third ? number(file, prefix + "final_logit_softcapping", 0.0)
                                   : number(file, prefix + "final_logit_softcapping", 30.0);
    for_blocks(config, [&](Block& b) {
        b.score_softcap = cap;
        if (is_largest) b.softmax_scale = 1.0f / std::sqrt(static_cast<float>(stack.d_model / b.n_heads));
    });
    if (is_third) settle_window_rope(file, prefix, config);
}

/// Half of a window lies on each side; matrices behind the pooling have no keys that their tensors do not say.
void settle_gemma_embedding(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_gemma(file, prefix, config);
    settle_window_rope(file, prefix, config);
    for_blocks(config, [](Block& b) { b.window = b.window ? b.window / 2 + 1 : 0; });
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
    for_blocks(config, [&](Block& b) { b.projection_clip = clip; });
}

void settle_alibi(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_clip(file, prefix, config);
    config.slopes = alibi_slopes(config.stack.blocks[0].n_heads,
                                 file.number_or(prefix + "attention.max_alibi_bias", 1e-3, 1e3, 8.0));
}

/// BLOOM norms its embeddings.
void settle_bloom(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_alibi(file, prefix, config);
    config.stack.embedding_norm = Norm::layer;
    config.stack.embedding_norm_bias = true;
}

void settle_parallel(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    const bool parallel = file.flag_or(prefix + "use_parallel_residual", config.stack.blocks[0].parallel);
    for_blocks(config, [&](Block& b) { b.parallel = parallel, b.shared_norm &= parallel; });
}

void settle_granite(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    config.stack.embedding_scale = number(file, prefix + "embedding_scale", 1.0);
    const float logits = number(file, prefix + "logit_scale", 1.0),
                residual = number(file, prefix + "residual_scale", 1.0);
    if (logits == 0.0f) file.refuse(prefix + "logit_scale", "other than 0");
    if (residual == 0.0f) file.refuse(prefix + "residual_scale", "other than 0");
    config.stack.logit_scale = 1.0f / logits;
    const bool turns =
        file.flag_or(prefix + "rope.scaling.finetuned", true);  // here this says whether there are positions
    for_blocks(config, [&](Block& b) {
        b.residual_scale = residual == 1.0f ? 0.0f : residual;
        if (!turns) b.position = Position::none, b.rotary_dim = 0, b.rope_scale = 1.0f;
    });
}

void settle_cohere(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    config.stack.logit_scale = number(file, prefix + "logit_scale", 1.0);
}

/// Every fourth layer has no positions.
void settle_smollm3(const Gguf&, const std::string&, GgufConfig& config) {
    Stack& stack = config.stack;
    if (stack.n_layers < 4) return;
    stack.blocks[1] = stack.blocks[0];
    stack.blocks[1].position = Position::none;
    stack.blocks[1].rotary_dim = 0;
    stack.blocks[1].rope_scale = 1.0f;
    stack.n_blocks = 2;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) config.layer_blocks.push_back((i + 1) % 4 == 0);
    stack.layer_blocks = config.layer_blocks;
}

/// One norm, or two of which the second is attention's.
void settle_falcon(const Gguf& file, const std::string&, GgufConfig& config) {
    config.usual_names = file.tensors().count("blk.0.attn_norm_2.weight") == 0;
    for_blocks(config, [&](Block& b) { b.shared_norm = config.usual_names; });
}

/// OLMo 3's windows turn as before its scaling.
void settle_olmo2(const Gguf&, const std::string&, GgufConfig& config) {
    for (std::uint32_t i = 0; i < config.stack.n_blocks; ++i) {
        Block& b = config.stack.blocks[i];
        if (!b.window) continue;
        config.ropes[i] = {.base = config.ropes[i].base};
        b.rope_scale = 1.0f;
    }
}

/// The first layer's attention has no norm, for the embeddings' stands right before it: it becomes a layer of attention alone and
/// one of the feed-forward part alone. The others see a window on both sides, but every n-th.
void settle_modern_bert(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    Stack& stack = config.stack;
    Block full = stack.blocks[0];
    const std::string activation =
        file.text_or(prefix + "hidden_act", file.text_or(prefix + "hidden_activation", "gelu"));
    if (activation != "gelu" && activation != "silu") file.refuse(prefix + "hidden_act", "gelu or silu");
    if (activation == "silu") full.activation = Activation::silu;
    Block attends = full, feeds = full, local = full;
    attends.d_ff = 0;
    attends.norm = Norm::none;
    attends.norm_bias = attends.gated = attends.up_bias = attends.gate_bias = attends.down_bias = false;
    feeds.n_heads = feeds.n_kv_heads = feeds.head_dim = feeds.value_head_dim = feeds.rotary_dim = 0;
    feeds.position = Position::none;
    feeds.query_bias = feeds.key_bias = feeds.value_bias = feeds.output_bias = false;
    local.window = file.count_or(prefix + "attention.sliding_window", 0) / 2;
    local.window += local.window ? 1 : 0;
    const std::string pattern = prefix + "attention.sliding_window_pattern";
    const std::uint32_t period = file.has(pattern) ? file.count(pattern) : 3;
    const Rope global = config.ropes[0];
    const double local_base = file.number_or(prefix + "rope.freq_base_swa", 1.01, 1e30, 10000.0);
    stack.n_blocks = 0;
    const auto add = [&](std::uint32_t number, const Block& block) {
        std::uint8_t kind = 0;
        while (kind < stack.n_blocks && stack.blocks[kind] != block) ++kind;
        if (kind == stack.n_blocks) stack.blocks[stack.n_blocks++] = block;
        config.ropes[kind] = global;
        if (block.window) config.ropes[kind].base = local_base;
        config.layer_blocks.push_back(kind);
        config.layer_numbers.push_back(number);
    };
    add(0, attends);
    add(0, feeds);
    for (std::uint32_t i = 1; i < stack.n_layers; ++i) add(i, i % period && local.window ? local : full);
    stack.n_layers += 1;
    stack.layer_blocks = config.layer_blocks;
}

/// Positions are relative ones, of as many buckets; distances that share the last one are the published models'.
void settle_t5(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr std::uint32_t kMostBuckets = 256, kMaxDistance = 128;
    Block& b = config.stack.blocks[0];
    b.gated = file.tensors().count("enc.blk.0.ffn_gate.weight") != 0;
    b.activation = b.gated ? Activation::gelu_tanh : Activation::relu;
    b.softmax_scale = 1.0f;
    b.position = Position::relative;
    b.relative_max_distance = kMaxDistance;
    const std::string buckets = prefix + "attention.relative_buckets_count";
    config.n_relative_buckets = file.count(buckets, 4, kMostBuckets);
    if (config.n_relative_buckets % 4) file.refuse(buckets, "a multiple of 4");
    if (prefix == "t5.") config.notes.push_back("general.architecture: of T5 the encoder alone is read");
}

bool is_t5_decoder(std::string_view name) {
    return name.starts_with("dec.") || name.starts_with("output.") ||
           (name.starts_with("enc.blk.") && !name.starts_with("enc.blk.0.") && name.ends_with(".attn_rel_b.weight"));
}

/// Its ramp's ends are not rounded, which no key says.
void settle_gpt_oss(const Gguf&, const std::string&, GgufConfig& config) {
    for (Rope& rope : config.ropes) rope.truncate = false;
}

/// Attention's widths. Files have a head's in keys of their own where the usual ones are those of what is cached.
void settle_latent(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr std::uint32_t kMostDim = 1u << 16;
    Block& b = config.stack.blocks[0];
    const auto width = [&](const char* own, const char* usual) {
        const std::string key = prefix + (file.has(prefix + own) ? own : usual);
        return file.count(key, 1, kMostDim);
    };
    const std::uint32_t query = width("attention.key_length_mla", "attention.key_length");
    if (file.has(prefix + "attention.q_lora_rank"))
        b.query_rank = file.count(prefix + "attention.q_lora_rank", 1, kMostDim);
    b.rotary_dim = file.count(prefix + "rope.dimension_count", 2, kMostDim);
    if (query <= b.rotary_dim)
        file.refuse(prefix + "rope.dimension_count", "less than a head's " + std::to_string(query));
    b.latent_query_dim = query - b.rotary_dim;
    b.latent_value_dim = width("attention.value_length_mla", "attention.value_length");
    b.value_head_dim = file.count(prefix + "attention.kv_lora_rank", 1, kMostDim);
    b.head_dim = b.rotary_dim + b.value_head_dim;
    b.n_kv_heads = 1;
    const Rope& rope = config.ropes[0];
    const double log_multiplier = file.number_or(prefix + "rope.scaling.yarn_log_multiplier", -1e3, 1e3, 0.0);
    const double factor =
        rope.scaling == RopeScaling::yarn ? yarn_attention_factor(rope.factor, 10 * log_multiplier) : 1.0;
    b.softmax_scale = static_cast<float>(factor * factor / std::sqrt(static_cast<double>(query)));
}

void settle_routing(const Gguf& file, const std::string& prefix, Block& b, std::uint32_t n_dense) {
    constexpr std::uint32_t kSoftmax = 1, kSigmoid = 2, kMostShared = 1u << 10;
    const std::uint32_t gating = file.count_or(prefix + "expert_gating_func", kSoftmax);
    if (gating != kSoftmax && gating != kSigmoid)
        file.refuse(prefix + "expert_gating_func", "1 (softmax) or 2 (sigmoid)");
    b.router_score = gating == kSigmoid ? RouterScore::sigmoid : RouterScore::softmax;
    b.choice_bias = file.tensors().count("blk." + std::to_string(n_dense) + ".exp_probs_b.bias") != 0;
    const float scale = number(file, prefix + "expert_weights_scale", 1.0);
    b.routed_scale = scale == 1.0f ? 0.0f : scale;
    const std::uint32_t n_shared = file.count_or(prefix + "expert_shared_count", 0);
    if (n_shared > kMostShared) file.refuse(prefix + "expert_shared_count", "at most " + std::to_string(kMostShared));
    b.shared_d_ff = n_shared * b.d_ff;
    const std::uint32_t n_groups = file.count_or(prefix + "expert_group_count", 0);
    if (n_groups < 2) return;
    if (b.n_experts % n_groups)
        file.refuse(prefix + "expert_group_count", "a divisor of the " + std::to_string(b.n_experts) + " experts");
    const std::uint32_t n_used = file.count(prefix + "expert_group_used_count", 1, n_groups);
    if (n_used < n_groups)
        b.n_expert_groups = static_cast<std::uint16_t>(n_groups), b.n_groups_used = static_cast<std::uint16_t>(n_used);
}

/// The first layers have no experts.
void settle_deepseek(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_latent(file, prefix, config);
    Stack& stack = config.stack;
    Block dense = stack.blocks[0];
    if (!dense.n_experts) return;
    const std::uint32_t n_dense = std::min(file.count_or(prefix + "leading_dense_block_count", 0), stack.n_layers);
    dense.d_ff = file.count(prefix + "feed_forward_length");
    dense.n_experts = dense.n_experts_used = 0;
    dense.normalize_experts = false;
    settle_routing(file, prefix, stack.blocks[0], n_dense);
    if (n_dense == 0) return;
    stack.blocks[1] = stack.blocks[0];
    stack.blocks[0] = dense;
    config.ropes[1] = config.ropes[0];
    stack.n_blocks = n_dense < stack.n_layers ? 2 : 1;
    if (stack.n_blocks == 1) return;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) config.layer_blocks.push_back(i >= n_dense);
    stack.layer_blocks = config.layer_blocks;
}

constexpr const char* kCaps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
constexpr const char* kSlopes[] = {"attention.max_alibi_bias", "attention.clamp_kqv"};
constexpr const char* kMultipliers[] = {"logit_scale", "residual_scale", "embedding_scale"};

constexpr GgufName kOutputNorms[] = {{Role::attention_norm, "#post_attention_norm.weight"},
                                     {Role::feed_forward_norm, "#post_ffw_norm.weight"}};
constexpr GgufName kFollowingNorms[] = {{Role::attention_norm, "#attn_output_norm.weight"},
                                        {Role::attention_norm_bias, "#attn_output_norm.bias"},
                                        {Role::feed_forward_norm, "#layer_output_norm.weight"},
                                        {Role::feed_forward_norm_bias, "#layer_output_norm.bias"}};
constexpr GgufName kEncoder[] = {{Role::final_norm, "enc.output_norm.weight"},
                                 {Role::relative_bias, "enc.blk.0.attn_rel_b.weight"},
                                 {Role::attention_output, "#attn_o.weight"}};
constexpr GgufName kPostNorms[] = {{Role::feed_forward_norm, "#post_attention_norm.weight"}};
constexpr GgufName kFalconNorms[] = {{Role::attention_norm, "#attn_norm_2.weight"},
                                     {Role::attention_norm_bias, "#attn_norm_2.bias"},
                                     {Role::feed_forward_norm, "#attn_norm.weight"},
                                     {Role::feed_forward_norm_bias, "#attn_norm.bias"}};
constexpr GgufName kSubNorms[] = {{Role::attention_post_norm, "#attn_sub_norm.weight"},
                                  {Role::feed_forward_post_norm, "#ffn_sub_norm.weight"}};
constexpr GgufName kLatent[] = {
    {Role::query_down, "#attn_q_a.weight"},   {Role::query_down_norm, "#attn_q_a_norm.weight"},
    {Role::key, "#attn_kv_a_mqa.weight"},     {Role::latent_norm, "#attn_kv_a_norm.weight"},
    {Role::latent_query, "#attn_k_b.weight"}, {Role::latent_value, "#attn_v_b.weight"},
    {Role::choice_bias, "#exp_probs_b.bias"}};

using enum GgufWindows;
constexpr GgufFamily kFamilies[] = {
    {.architecture = "llama", .halves = false, .windows = all, .experts = true, .normalize_experts = true},
    {.architecture = "qwen2", .windows = all},
    {.architecture = "qwen3", .head_norm = Norm::rms, .windows = all},
    {.architecture = "gpt2",
     .norm = Norm::layer,
     .position = Position::learned,
     .activation = Activation::gelu_tanh,
     .gated = false},
    {.architecture = "bert",
     .norm = Norm::layer,
     .norm_place = NormPlace::post,
     .position = Position::learned,
     .activation = Activation::gelu,
     .gated = false,
     .encoder = true,
     .names = kFollowingNorms},
    {.architecture = "nomic-bert",
     .norm = Norm::layer,
     .norm_place = NormPlace::post,
     .encoder = true,
     .names = kFollowingNorms},
    {.architecture = "modern-bert",
     .norm = Norm::layer,
     .activation = Activation::gelu,
     .stacked_up = true,
     .encoder = true,
     .settle = settle_modern_bert},
    {.architecture = "t5encoder",
     .position = Position::relative,
     .encoder = true,
     .names = kEncoder,
     .prefix = "enc.",
     .ignores = is_t5_decoder,
     .settle = settle_t5},
    {.architecture = "t5",
     .position = Position::relative,
     .encoder = true,
     .names = kEncoder,
     .prefix = "enc.",
     .ignores = is_t5_decoder,
     .settle = settle_t5},
    {.architecture = "gemma", .activation = Activation::gelu_tanh, .settle = settle_gemma},
    {.architecture = "gemma2",
     .norm_place = NormPlace::both,
     .activation = Activation::gelu_tanh,
     .windows = one_in,
     .period = 2,
     .usual_window = 4096,
     .keys = kCaps,
     .settle = settle_gemma2},
    {.architecture = "gemma3",
     .norm_place = NormPlace::both,
     .activation = Activation::gelu_tanh,
     .head_norm = Norm::rms,
     .windows = one_in,
     .period = 6,
     .keys = kCaps,
     .settle = settle_gemma2},
    {.architecture = "gemma-embedding",
     .norm_place = NormPlace::both,
     .activation = Activation::gelu_tanh,
     .head_norm = Norm::rms,
     .windows = one_in,
     .period = 6,
     .encoder = true,
     .settle = settle_gemma_embedding},
    {.architecture = "phi2",
     .norm = Norm::layer,
     .activation = Activation::gelu_tanh,
     .gated = false,
     .parallel = true},
    {.architecture = "phi3", .stacked_up = true, .windows = all},
    {.architecture = "gptneox",
     .norm = Norm::layer,
     .activation = Activation::gelu,
     .gated = false,
     .parallel = true,
     .settle = settle_parallel},
    {.architecture = "bloom",
     .norm = Norm::layer,
     .position = Position::alibi,
     .activation = Activation::gelu_tanh,
     .gated = false,
     .keys = kSlopes,
     .settle = settle_bloom},
    {.architecture = "mpt",
     .norm = Norm::layer,
     .position = Position::alibi,
     .activation = Activation::gelu,
     .gated = false,
     .keys = kSlopes,
     .settle = settle_alibi},
    {.architecture = "falcon",
     .norm = Norm::layer,
     .activation = Activation::gelu,
     .gated = false,
     .parallel = true,
     .names = kFalconNorms,
     .settle = settle_falcon},
    {.architecture = "stablelm",
     .norm = Norm::layer,
     .parallel = true,
     .head_norm = Norm::layer,
     .heads = HeadNorm::each,
     .settle = settle_parallel},
    {.architecture = "starcoder2",
     .norm = Norm::layer,
     .activation = Activation::gelu_tanh,
     .gated = false,
     .windows = all},
    {.architecture = "olmo",
     .norm = Norm::layer,
     .halves = false,
     .norm_weights = false,
     .keys = kSlopes,
     .settle = settle_clip},
    {.architecture = "olmo2",
     .norm_place = NormPlace::output,
     .head_norm = Norm::rms,
     .heads = HeadNorm::together,
     .windows = one_in,
     .period = 4,
     .names = kOutputNorms,
     .settle = settle_olmo2},
    {.architecture = "exaone4",
     .norm_place = NormPlace::output,
     .head_norm = Norm::rms,
     .windows = one_in,
     .period = 4,
     .only_windows_turn = true,
     .names = kOutputNorms},
    {.architecture = "granite", .halves = false, .keys = kMultipliers, .settle = settle_granite},
    {.architecture = "command-r",
     .norm = Norm::layer,
     .halves = false,
     .parallel = true,
     .head_norm = Norm::layer,
     .heads = HeadNorm::each,
     .keys = kMultipliers,
     .settle = settle_cohere},
    {.architecture = "cohere2",
     .norm = Norm::layer,
     .halves = false,
     .parallel = true,
     .windows = one_in,
     .period = 4,
     .only_windows_turn = true,
     .keys = kMultipliers,
     .settle = settle_cohere},
    {.architecture = "smollm3", .halves = false, .settle = settle_smollm3},
    {.architecture = "arcee", .halves = false, .activation = Activation::relu2, .gated = false},
    {.architecture = "seed_oss", .names = kPostNorms},
    {.architecture = "nemotron", .norm = Norm::layer, .activation = Activation::relu2, .gated = false},
    {.architecture = "bitnet", .norm_place = NormPlace::within, .names = kSubNorms},
    {.architecture = "bitnet-25", .norm_place = NormPlace::within, .activation = Activation::relu2, .names = kSubNorms},
    {.architecture = "bitnet-b1.58",
     .norm_place = NormPlace::within,
     .activation = Activation::relu2,
     .names = kSubNorms},
    {.architecture = "ernie4_5", .halves = false},
    {.architecture = "chatglm", .halves = false, .stacked_up = true},
    {.architecture = "glm4", .norm_place = NormPlace::both, .halves = false, .stacked_up = true},
    {.architecture = "qwen2moe", .windows = all, .experts = true},
    {.architecture = "qwen3moe", .head_norm = Norm::rms, .windows = all, .experts = true, .normalize_experts = true},
    {.architecture = "olmoe",
     .head_norm = Norm::rms,
     .heads = HeadNorm::together,
     .experts = true,
     .keys = kSlopes,
     .settle = settle_clip},
    {.architecture = "gpt-oss",
     .activation = Activation::silu_clamped,
     .windows = one_in,
     .period = 2,
     .experts = true,
     .normalize_experts = true,
     .names = kPostNorms,
     .settle = settle_gpt_oss},
    {.architecture = "deepseek2",
     .halves = false,
     .experts = true,
     .latent = true,
     .names = kLatent,
     .settle = settle_deepseek},
};

}  // namespace

const GgufFamily* find_gguf_family(const std::string& architecture) {
    for (const GgufFamily& family : kFamilies)
        if (architecture == family.architecture) return &family;
    return nullptr;
}

std::string known_gguf_architectures() {
    std::string words;
    for (const GgufFamily& family : kFamilies)
        words += (&family == kFamilies                 ? ""
                  : &family == std::end(kFamilies) - 1 ? " or "
                                                       : ", ") +
                 std::string(family.architecture);
    return words;
}

}  // namespace fovea
