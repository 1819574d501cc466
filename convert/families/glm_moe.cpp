// Ordinary attention with experts that are chosen as DeepSeek 3 chooses them: GLM 4.5 (GLM Team 2025), dots.llm1 (rednote-hilab
// 2025), Solar Open (Upstage 2025), K-EXAONE (LG AI Research 2025).
#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kGlmMoeTypes[] = {
    {"glm4_moe",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "num_experts_per_tok": 8, "n_shared_experts": 1,
         "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "norm_topk_prob": true, "rms_norm_eps": 1e-5,
         "partial_rotary_factor": 0.5, "num_nextn_predict_layers": 1})"},
    {"dots1",
     R"({"max_position_embeddings": 2048, "num_key_value_heads": 32, "n_group": 1, "topk_group": 1,
         "sliding_window": 4096, "max_window_layers": 62})"},
    {"solar_open",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 8,
         "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "rms_norm_eps": 1e-5,
         "rope_theta": 1000000.0})"},
    {"exaone_moe",
     R"({"max_position_embeddings": 2048, "num_key_value_heads": 32, "num_experts_per_tok": 8,
         "num_shared_experts": 1, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "norm_topk_prob": true,
         "routed_scaling_factor": 2.5, "rms_norm_eps": 1e-5, "sliding_window": 4096, "sliding_window_pattern": 4})"}};

constexpr auto kGlmMoeNames = kSharedExpertNames.with({
    {Role::choice_bias, "#mlp.gate.e_score_correction_bias"},
});

/// If no field lists them, dots1's windows are those of layers from max_window_layers on, and K-EXAONE's all but every
/// n-th.
std::vector<bool> windowed_layers(const Fields& fields, const std::string& type, std::uint32_t n_layers) {
    std::vector<bool> windowed(n_layers);
    if (type != "dots1" && type != "exaone_moe") return windowed;
    if (fields.has("layer_types")) return read_sliding_layers(fields, n_layers);
    if (!fields.has("sliding_window")) return windowed;
    const bool is_exaone = type == "exaone_moe";
    const std::uint32_t number = fields.count(is_exaone ? "sliding_window_pattern" : "max_window_layers", is_exaone);
    if (is_exaone) return all_but_every(number, n_layers);
    for (std::uint32_t i = number; i < n_layers; ++i) windowed[i] = true;
    return windowed;
}

void read_glm_moe(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_glm = type == "glm4_moe", is_exaone = type == "exaone_moe", is_solar = type == "solar_open";
    Block block =
        read_sizes(fields, {.d_ff = is_solar ? "moe_intermediate_size" : "intermediate_size"}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    const bool has_head_norm = is_glm ? fields.flag_or("use_qk_norm", false) : !is_solar;
    block.attention.query_key_norm = has_head_norm ? Norm::rms : Norm::none;
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.feed.gated = true;
    block.attention.query_bias = block.attention.key_bias = block.attention.value_bias =
        !is_exaone && fields.flag_or("attention_bias", false);
    block.attention.output_bias = type == "dots1" && block.attention.query_bias;

    const std::vector<bool> windowed = windowed_layers(fields, type, stack.n_layers);
    std::vector<bool> sparse(stack.n_layers, true);
    if (!is_solar) sparse = read_layers_with_experts(fields, stack.n_layers);
    const RoutingNames names{.n_experts = is_exaone ? "num_experts" : "n_routed_experts",
                             .n_shared = is_exaone ? "num_shared_experts" : "n_shared_experts"};
    Block experts = block;
    read_routing(fields, names, RouterScore::sigmoid, experts);
    read_expert_groups(fields, names, experts);
    const std::optional<double> part = is_glm || is_solar ? std::optional(1.0) : std::nullopt;
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = sparse[i] ? experts : block;
        // K-EXAONE has positions only in its windows, if it has windows.
        const bool turns = !is_exaone || windowed[i] || !fields.has("sliding_window");
        layers.push_back(turns ? with_rope(fields, own, nullptr, part) : LayerShape{own, {}, {}});
        if (windowed[i]) layers.back().block.attention.window = fields.count("sliding_window");
    }
    result.n_skipped_layers = is_glm ? number_or(fields, "num_nextn_predict_layers", 0, kMaxLayers) : 0;
    set_layers(fields, layers, result);
}

constexpr std::pair<std::string_view, std::string_view> kGlmMoeOlder[] = {
    {".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"}};

/// Tensors that predict tokens behind the next.
bool is_of_glm_further_tokens(std::string_view name) { return name.starts_with("mtp."); }

}  // namespace

const Family families::glm_moe = {.types = kGlmMoeTypes,
                                  .names = kGlmMoeNames,
                                  .read = read_glm_moe,
                                  .older = kGlmMoeOlder,
                                  .ignores = is_of_glm_further_tokens};

}  // namespace fovea
