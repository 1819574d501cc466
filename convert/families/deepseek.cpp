// DeepSeek 2 and 3 (DeepSeek-AI 2024): latent attention, first layers without experts, then many small experts and shared ones,
// which 2 chooses by probabilities, 3 by sigmoids and a learned bias; both maybe only among a few groups of experts.
// GLM 4.7 Flash (Zhipu 2026) and Sarvam's larger model (Sarvam AI 2026) are 3 with other defaults. Youtu-LLM (Tencent 2025) has that attention and no experts, as MiniCPM 3 has
// (OpenBMB 2024), with MiniCPM's factors.
#include <cmath>

#include "convert/families/latent.h"
#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kDeepseekTypes[] = {
    {"deepseek_v2", R"({"max_position_embeddings": 2048, "n_shared_experts": 2})"},
    {"deepseek_v3",
     R"({"max_position_embeddings": 4096, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 8,
         "topk_group": 4, "num_nextn_predict_layers": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
         "first_k_dense_replace": 3})"},
    {"glm4_moe_lite",
     R"({"max_position_embeddings": 202752, "num_experts_per_tok": 4, "n_shared_experts": 1, "n_group": 1,
         "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 1.8, "rms_norm_eps": 1e-5})"},
    {"sarvam_mla",
     R"({"max_position_embeddings": 4096, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 1,
         "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "first_k_dense_replace": 1})"},
    {"youtu", R"({"max_position_embeddings": 131072, "tie_word_embeddings": true})"},
    {"minicpm3",
     R"({"max_position_embeddings": 32768, "tie_word_embeddings": true, "rms_norm_eps": 1e-5, "scale_emb": 12,
         "scale_depth": 1.4, "dim_model_base": 256})"}};
constexpr std::uint32_t kMostDim = 1u << 16;

constexpr auto kDeepseekNames = kSharedExpertNames.with(kLatentNames)
                                    .with({
                                        {Role::choice_bias, "#mlp.gate.e_score_correction_bias"},
                                    });

}  // namespace

LayerShape read_latent(const Fields& fields, const std::string& type, Block block) {
    const bool is_minicpm = type == "minicpm3";
    refuse_true(fields, "attention_bias");
    // The norms inside attention have it whatever the configuration says.
    if (block.norm_epsilon != 1e-6f) block.latent.norm_epsilon = 1e-6f;
    if (fields.has("q_lora_rank")) block.latent.query_rank = fields.count("q_lora_rank", 1, kMostDim);
    block.attention.rotary_dim = fields.count("qk_rope_head_dim", 2, kMostDim);
    block.latent.query_dim = fields.count("qk_nope_head_dim", 1, kMostDim);
    block.latent.value_dim = fields.count("v_head_dim", 1, kMostDim);
    block.attention.value_head_dim = fields.count("kv_lora_rank", 1, kMostDim);
    block.attention.head_dim = block.attention.rotary_dim + block.attention.value_head_dim;
    block.attention.n_kv_heads = 1;
    block.attention.position = Position::rope;
    Rope rope = read_hf_rope(fields);
    if (rope.scaling == RopeScaling::divided && !is_minicpm)
        fields.refuse("rope_scaling", "another type than longrope");
    const std::uint32_t turns = read_hf_rotary_dim(fields, block.attention.rotary_dim, nullptr, 1.0);
    if (type == "glm4_moe_lite" && turns != block.attention.rotary_dim) fields.refuse("partial_rotary_factor", "1");
    if (is_minicpm) check_divisors(fields, rope, block.attention.rotary_dim / 2);
    rope.halves = is_minicpm || !fields.flag_or("rope_interleave", true);
    block.attention.rope_scale = rope.attention_factor;
    double scale = 1.0 / std::sqrt(static_cast<double>(block.attention.rotary_dim + block.latent.query_dim));
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
        if (rope.scaling != RopeScaling::yarn || !fields.has(name)) continue;
        const double of_scores = fields.object(name).number_or("mscale_all_dim", 0.0, 1e3, 0.0);
        const double factor = of_scores != 0.0 ? yarn_attention_factor(rope.factor, of_scores) : 1.0;
        scale *= factor * factor;
        break;
    }
    block.attention.softmax_scale = static_cast<float>(scale);
    return {block, rope, {}};
}

namespace {

/// MiniCPM's factors; null leaves one out.
void read_minicpm3_multipliers(const Fields& fields, Stack& stack, Block& block) {
    stack.embedding_scale = static_cast<float>(fields.number("scale_emb", 1e-9, 1e9));
    if (fields.has("scale_depth"))
        block.residual_scale = static_cast<float>(fields.number("scale_depth", 1e-9, 1e9) /
                                                  std::sqrt(static_cast<double>(stack.n_layers)));
    if (block.residual_scale == 1.0f) block.residual_scale = 0.0f;
    if (fields.has("dim_model_base"))
        stack.logit_scale = static_cast<float>(fields.number("dim_model_base", 1e-9, 1e9) / stack.d_model);
}

/// The method's name says more of 2 than of 3: whether groups count.
void read_deepseek_choice(const Fields& fields, bool is_third, Block& block) {
    const RoutingNames names;
    read_routing(fields, names, is_third ? RouterScore::sigmoid : RouterScore::softmax, block);
    if (is_third) return read_expert_groups(fields, names, block);
    refuse_true(fields, "norm_topk_prob");
    const std::string method = fields.text_or("topk_method", "greedy");
    if (method != "greedy" && method != "group_limited_greedy")
        fields.refuse("topk_method", "greedy or group_limited_greedy");
    if (method != "greedy") read_expert_groups(fields, names, block);
}

/// Sarvam's published files have other names, and head_dim for what is cached.
Fields without_sarvam_names(const Fields& all) {
    Fields fields = all.with("head_dim", nullptr);
    for (const auto& [theirs, usual] :
         {std::pair{"num_experts", "n_routed_experts"}, {"num_shared_experts", "n_shared_experts"}})
        if (all.has(theirs)) fields = fields.with(usual, all.json()[theirs]);
    if (!all.has("rope_scaling")) return fields;
    const Fields scaling = all.object("rope_scaling");
    if (scaling.text_or("type", scaling.text_or("rope_type", "")) != "deepseek_yarn") return fields;
    return fields.with("rope_scaling", scaling.with("type", "yarn").with("rope_type", "yarn").json());
}

void read_deepseek(const Fields& all_fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_lite = type == "glm4_moe_lite", is_sarvam = type == "sarvam_mla",
               is_third = type == "deepseek_v3" || is_lite || is_sarvam;
    // Without a list all its layers but the first have experts.
    const Fields fields = is_lite     ? all_fields.with("first_k_dense_replace", 1u)
                          : is_sarvam ? without_sarvam_names(all_fields)
                                      : all_fields;
    // Its class makes positions of head_dim where a file has it; the second's does not.
    if (const std::uint32_t turns = fields.count("qk_rope_head_dim");
        is_third && fields.has("head_dim") && fields.count("head_dim") != turns)
        fields.refuse("head_dim", "qk_rope_head_dim, " + std::to_string(turns));
    Block block = read_gated(fields, {}, false, stack);
    refuse_true(fields, "mlp_bias");
    if (fields.count_or("moe_layer_freq", 1) != 1) fields.refuse("moe_layer_freq", "1");
    if (type == "minicpm3") read_minicpm3_multipliers(fields, stack, block);
    const bool must_say = type != "minicpm3" || fields.has("v_head_dim");
    const LayerShape dense = read_latent(
        must_say ? fields : fields.with("v_head_dim", stack.d_model / block.attention.n_heads), type, block);
    LayerShape sparse = dense;
    const bool has_experts = type != "youtu" && type != "minicpm3";
    if (has_experts) read_deepseek_choice(fields, is_third, sparse.block);
    for (std::uint32_t i = 0; dense.block.latent.query_rank && i < stack.n_layers; ++i)
        result.names[{Role::query, i}] = "#self_attn.q_b_proj.weight";
    result.n_skipped_layers = is_third ? number_or(fields, "num_nextn_predict_layers", 0, kMaxLayers) : 0;
    const std::vector<bool> is_sparse =
        has_experts ? read_layers_with_experts(fields, stack.n_layers) : std::vector<bool>(stack.n_layers);
    set_layers(fields, with_experts_in(is_sparse, dense, sparse), result);
}

}  // namespace

const Family families::deepseek = {.types = kDeepseekTypes, .names = kDeepseekNames, .read = read_deepseek};

}  // namespace fovea
