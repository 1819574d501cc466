// DeepSeek 2 and 3 (DeepSeek-AI 2024): latent attention, first layers without experts, then many small experts and shared ones,
// which 2 chooses by probabilities, 3 by sigmoids and a learned bias; both maybe among a few groups of experts alone. Youtu-LLM
// (Tencent 2025) has that attention and no experts.
#include <cmath>

#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kModelTypes[] = {
    {"deepseek_v2", R"({"max_position_embeddings": 2048, "n_shared_experts": 2})"},
    {"deepseek_v3",
     R"({"max_position_embeddings": 4096, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 8,
         "topk_group": 4, "num_nextn_predict_layers": 1})"},
    {"youtu", R"({"max_position_embeddings": 131072, "tie_word_embeddings": true})"}};
constexpr std::uint32_t kMostDim = 1u << 16;

constexpr auto kNames = with_llama_names({
    {Role::query_down, "#self_attn.q_a_proj.weight"},
    {Role::query_down_norm, "#self_attn.q_a_layernorm.weight"},
    {Role::key, "#self_attn.kv_a_proj_with_mqa.weight"},
    {Role::latent_norm, "#self_attn.kv_a_layernorm.weight"},
    {Role::latent_query, "#self_attn.kv_b_proj.weight"},
    {Role::latent_value, "#self_attn.kv_b_proj.weight"},
    {Role::router, "#mlp.gate.weight"},
    {Role::choice_bias, "#mlp.gate.e_score_correction_bias"},
    {Role::expert_up, "#mlp.experts.*.up_proj.weight", Within::alone, "#mlp.experts.*.gate_proj.weight"},
    {Role::expert_down, "#mlp.experts.*.down_proj.weight"},
    {Role::shared_up, "#mlp.shared_experts.up_proj.weight", Within::alone, "#mlp.shared_experts.gate_proj.weight"},
    {Role::shared_down, "#mlp.shared_experts.down_proj.weight"},
});

/// A number that may be 0.
std::uint32_t number_or(const Fields& fields, const char* name, std::uint32_t otherwise, std::uint32_t most) {
    return fields.has(name) ? fields.count(name, 0, most) : otherwise;
}

/// Widths of heads, and the scale of their scores, to which YaRN adds.
LayerShape read_attention(const Fields& fields, Block block) {
    refuse_true(fields, "attention_bias");
    // The norms inside attention have it whatever the configuration says.
    if (block.norm_epsilon != 1e-6f) fields.refuse("rms_norm_eps", "1e-06");
    if (fields.has("q_lora_rank")) block.query_rank = fields.count("q_lora_rank", 1, kMostDim);
    block.rotary_dim = fields.count("qk_rope_head_dim", 2, kMostDim);
    block.latent_query_dim = fields.count("qk_nope_head_dim", 1, kMostDim);
    block.latent_value_dim = fields.count("v_head_dim", 1, kMostDim);
    block.value_head_dim = fields.count("kv_lora_rank", 1, kMostDim);
    block.head_dim = block.rotary_dim + block.value_head_dim;
    block.n_kv_heads = 1;
    block.position = Position::rope;
    Rope rope = read_hf_rope(fields);
    rope.halves = !fields.flag_or("rope_interleave", true);
    block.rope_scale = rope.attention_factor;
    double scale = 1.0 / std::sqrt(static_cast<double>(block.rotary_dim + block.latent_query_dim));
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
        if (rope.scaling != RopeScaling::yarn || !fields.has(name)) continue;
        const double of_scores = fields.object(name).number_or("mscale_all_dim", 0.0, 1e3, 0.0);
        const double factor = of_scores != 0.0 ? yarn_attention_factor(rope.factor, of_scores) : 1.0;
        scale *= factor * factor;
        break;
    }
    block.softmax_scale = static_cast<float>(scale);
    return {block, rope, {}};
}

void read_routing(const Fields& fields, bool is_third, Block& block) {
    read_experts(fields, {.n_experts = "n_routed_experts", .d_ff = "moe_intermediate_size"}, false, block);
    block.normalize_experts = fields.flag_or("norm_topk_prob", is_third);
    if (!is_third) refuse_true(fields, "norm_topk_prob");
    block.routed_scale = static_cast<float>(fields.number_or("routed_scaling_factor", -1e6, 1e6, is_third ? 2.5 : 1.0));
    if (block.routed_scale == 1.0f)
        block.routed_scale = 0.0f;
    else if (block.routed_scale == 0.0f)
        fields.refuse("routed_scaling_factor", "other than 0");
    block.router_score = is_third ? RouterScore::sigmoid : RouterScore::softmax;
    block.choice_bias = is_third;
    const char* score = is_third ? "sigmoid" : "softmax";
    if (fields.text_or("scoring_func", score) != score) fields.refuse("scoring_func", score);
    const std::string method = fields.text_or("topk_method", is_third ? "noaux_tc" : "greedy");
    const bool groups = is_third || method == "group_limited_greedy";
    if (is_third ? method != "noaux_tc" : !groups && method != "greedy")
        fields.refuse("topk_method", is_third ? "noaux_tc" : "greedy or group_limited_greedy");
    constexpr std::uint32_t kMostShared = 1u << 10;
    block.shared_d_ff = number_or(fields, "n_shared_experts", 0, kMostShared) * block.d_ff;
    if (!groups) return;
    block.n_expert_groups = fields.count("n_group", 1, block.n_experts);
    block.n_groups_used = fields.count("topk_group", 1, block.n_expert_groups);
    if (block.n_experts % block.n_expert_groups)
        fields.refuse("n_group", "a divisor of n_routed_experts, " + std::to_string(block.n_experts));
    if (block.n_groups_used == block.n_expert_groups) block.n_expert_groups = block.n_groups_used = 0;
}

void read(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_third = type == "deepseek_v3";
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.activation = read_activation(fields, "hidden_act", "silu");
    block.gated = true;
    refuse_true(fields, "mlp_bias");
    if (fields.count_or("moe_layer_freq", 1) != 1) fields.refuse("moe_layer_freq", "1");
    const LayerShape dense = read_attention(fields, block);
    LayerShape sparse = dense;
    const bool has_experts = type != "youtu";
    if (has_experts) read_routing(fields, is_third, sparse.block);
    const std::uint32_t n_dense =
        has_experts ? number_or(fields, "first_k_dense_replace", is_third ? 3 : 0, kMaxLayers) : stack.n_layers;
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        layers.push_back(i < n_dense ? dense : sparse);
        if (dense.block.query_rank) result.names[{Role::query, i}] = "#self_attn.q_b_proj.weight";
    }
    result.n_skipped_layers = is_third ? number_or(fields, "num_nextn_predict_layers", 0, kMaxLayers) : 0;
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::deepseek = {
    .types = kModelTypes, .names = kNames, .outer = "model.", .layers = "layers.", .read = read};

}  // namespace fovea
