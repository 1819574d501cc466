// Nemotron-H and 3 (NVIDIA 2025): each layer is one part, Mamba-2, attention, feed-forward or experts.
#include <string_view>

#include "convert/families/recurrent.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kNemotronHTypes[] = {
    {"nemotron_h",
     R"({"max_position_embeddings": 4096, "num_key_value_heads": 8, "head_dim": 128, "ssm_state_size": 128,
         "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4, "n_routed_experts": 8,
         "n_shared_experts": 1, "moe_intermediate_size": 7688, "moe_shared_expert_intermediate_size": 7688,
         "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "norm_topk_prob": true})"}};

constexpr auto kNemotronHNames = names_of({
    {Role::token_embedding, "embeddings.weight"},
    {Role::final_norm, "norm_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::recurrent_norm, "#norm.weight"},
    FOVEA_MAMBA2_NAMES("#mixer"),
    {Role::attention_norm, "#norm.weight"},
    {Role::query, "#mixer.q_proj.weight"},
    {Role::key, "#mixer.k_proj.weight"},
    {Role::value, "#mixer.v_proj.weight"},
    {Role::attention_output, "#mixer.o_proj.weight"},
    {Role::feed_forward_norm, "#norm.weight"},
    {Role::up, "#mixer.up_proj.weight"},
    {Role::down, "#mixer.down_proj.weight"},
    {Role::router, "#mixer.gate.weight"},
    {Role::choice_bias, "#mixer.gate.e_score_correction_bias"},
    {Role::expert_up, "#mixer.experts.*.up_proj.weight"},
    {Role::expert_down, "#mixer.experts.*.down_proj.weight"},
    {Role::shared_up, "#mixer.shared_experts.up_proj.weight"},
    {Role::shared_down, "#mixer.shared_experts.down_proj.weight"},
});

/// What each layer is, by the names or the letters of older files.
std::vector<std::string> kinds_of_layers(const Fields& fields) {
    if (fields.has("layers_block_type")) return fields.texts("layers_block_type");
    if (fields.has("layer_types")) return fields.texts("layer_types");
    std::vector<std::string> kinds;
    for (const char letter : fields.text("hybrid_override_pattern"))
        kinds.push_back(letter == 'M'   ? "linear_attention"
                        : letter == '*' ? "full_attention"
                        : letter == '-' ? "mlp"
                        : letter == 'E' ? "moe"
                                        : std::string(1, letter));
    return kinds;
}

void read_nemotron_h(const Fields& all, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const std::vector<std::string> kinds = kinds_of_layers(all);
    const Fields fields = all.with("num_hidden_layers", kinds.size());
    const Block block =
        read_sizes(fields, {.epsilon = "layer_norm_epsilon", .default_epsilon = 1e-5}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    if (read_activation(fields, "mamba_hidden_act", "silu") != Activation::silu)
        fields.refuse("mamba_hidden_act", "silu");
    refuse_present(fields, "moe_latent_size");
    read_mamba2(fields,
                {.n_heads = "mamba_num_heads",
                 .head_dim = "mamba_head_dim",
                 .n_groups = "n_groups",
                 .state_size = "ssm_state_size",
                 .n_taps = "conv_kernel",
                 .expand = "expand",
                 .kernel_bias = "use_conv_bias",
                 .bias = "use_bias",
                 .step_least = "time_step_min"},
                result);
    Block attends = block, feeds = block;
    attends.feed = {};
    feeds.attention = {.causal = true};
    feeds.feed.activation = read_activation(fields, "mlp_hidden_act", "relu2");
    feeds.feed.up_bias = feeds.feed.down_bias = fields.flag_or("mlp_bias", false);
    Block sparse = feeds;
    std::vector<LayerShape> layers;
    for (const std::string& kind : kinds) {
        if (kind == "linear_attention" || kind == "mamba")
            layers.push_back({recurrent_block(attends), {}, {}});
        else if (kind == "full_attention" || kind == "attention")
            layers.push_back({attends, {}, {}});
        else if (kind == "mlp")
            layers.push_back({feeds, {}, {}});
        else if (kind == "moe") {
            if (!sparse.experts.n) {
                read_routing(fields, {.n_shared = nullptr}, RouterScore::sigmoid, sparse);
                read_expert_groups(fields, {}, sparse);
                sparse.experts.shared_d_ff = fields.count("moe_shared_expert_intermediate_size", 1, kMaxWidth);
            }
            layers.push_back({sparse, {}, {}});
        } else {
            fields.refuse("layers_block_type", "linear_attention, full_attention, mlp or moe");
        }
    }
    set_layers(fields, layers, result);
}

/// Tensors that predict tokens behind the next.
bool is_of_more_tokens(std::string_view name) { return name.starts_with("mtp."); }

}  // namespace

const Family families::nemotron_h = {.types = kNemotronHTypes,
                                     .names = kNemotronHNames,
                                     .outer = "backbone.",
                                     .read = read_nemotron_h,
                                     .ignores = is_of_more_tokens};

}  // namespace fovea
