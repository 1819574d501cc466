// Hunyuan 3 (Tencent 2026) and Sarvam (Sarvam AI 2026): attention with normed heads, and experts that sigmoids and a learned bias choose
// beside a shared one.
#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kHyTypes[] = {
    {"hy_v3",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 8,
                  "num_experts": 192, "moe_intermediate_size": 1536, "num_shared_experts": 1, "rms_norm_eps": 1e-5,
                  "router_scaling_factor": 2.826, "rope_theta": 11158840.0, "first_k_dense_replace": 1})"}};
constexpr ModelType kSarvamTypes[] = {
    {"sarvam_moe",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 4, "head_dim": 64, "num_experts_per_tok": 6,
         "moe_intermediate_size": 1024, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": true,
         "first_k_dense_replace": 1, "routed_scaling_factor": 2.5, "rope_theta": 8000000.0})"}};

constexpr auto kHyNames = kSharedExpertNames.with({
    {Role::router, "#mlp.router.gate.weight"},
    {Role::choice_bias, "#mlp.expert_bias"},
    {Role::shared_up, "#mlp.shared_mlp.up_proj.weight", Within::alone, "#mlp.shared_mlp.gate_proj.weight"},
    {Role::shared_down, "#mlp.shared_mlp.down_proj.weight"},
});
constexpr TensorName kSarvamOwn[] = {
    {Role::token_embedding, "word_embeddings.weight"},
    {Role::query, "#attention.query_key_value.weight", Within::stacked},
    {Role::key, "#attention.query_key_value.weight", Within::stacked},
    {Role::value, "#attention.query_key_value.weight", Within::stacked},
    {Role::query_norm, "#attention.query_layernorm.weight"},
    {Role::key_norm, "#attention.key_layernorm.weight"},
    {Role::attention_output, "#attention.dense.weight"},
    {Role::choice_bias, "#mlp.gate.expert_bias"},
};
constexpr auto kSarvamNames = kSharedExpertNames.with(kSarvamOwn);

void read_hy_v3(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    refuse_true(fields, "mlp_bias");
    block.attention.query_key_norm = Norm::rms;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    Block experts = block;
    read_routing(fields,
                 {.n_experts = "num_experts", .n_shared = "num_shared_experts", .scale = "router_scaling_factor"},
                 RouterScore::sigmoid, experts);
    experts.experts.normalize = true;
    set_layers(fields,
               with_experts_in(read_layers_with_experts(fields, stack.n_layers), with_rope(fields, block),
                               with_rope(fields, experts)),
               result);
}

/// By the names of the published files too.
void read_sarvam_moe(const Fields& all, const std::string&, HfConfig& result) {
    Fields fields = all;
    for (const auto& [theirs, usual] : {std::pair{"num_experts", "n_routed_experts"},
                                        {"num_shared_experts", "n_shared_experts"},
                                        {"use_qkv_bias", "attention_bias"}})
        if (all.has(theirs)) fields = fields.with(usual, all.json()[theirs]);
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack);
    block.attention.query_key_norm = fields.flag_or("use_qk_norm", true) ? Norm::rms : Norm::none;
    block.attention.query_bias = block.attention.key_bias = block.attention.value_bias =
        fields.flag_or("attention_bias", false);
    Block experts = block;
    read_routing(fields, {}, RouterScore::sigmoid, experts);
    read_expert_groups(fields, {}, experts);
    set_layers(fields,
               with_experts_in(read_layers_with_experts(fields, stack.n_layers), with_rope(fields, block, nullptr, 1.0),
                               with_rope(fields, experts, nullptr, 1.0)),
               result);
}

}  // namespace

const Family families::hy_v3 = {
    .types = kHyTypes, .names = kHyNames, .read = read_hy_v3, .ignores = is_of_further_tokens};
const Family families::sarvam_moe = {.types = kSarvamTypes, .names = kSarvamNames, .read = read_sarvam_moe};

}  // namespace fovea
