// GLM 4 (GLM Team 2024): adjacent dims turned, half of each head; the 2025 generation norms on both sides of each part.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGlm[] = {
    {"glm",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"}};
constexpr ModelType kGlm4[] = {
    {"glm4",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"}};

constexpr auto kGlmNames = with_llama_names({{Role::up, "#mlp.gate_up_proj.weight", Within::stacked}});
constexpr auto kGlm4Names = with_llama_names({
    {Role::attention_post_norm, "#post_self_attn_layernorm.weight"},
    {Role::feed_forward_post_norm, "#post_mlp_layernorm.weight"},
    {Role::up, "#mlp.gate_up_proj.weight", Within::stacked},
});

void read(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.default_epsilon = 1.5625e-7}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.norm_place = type == "glm4" ? NormPlace::both : NormPlace::pre;
    block.activation = read_activation(fields, "hidden_act", "silu");
    block.gated = true;
    block.query_bias = block.key_bias = block.value_bias = fields.flag_or("attention_bias", false);
    set_layers(fields, std::vector<LayerShape>(stack.n_layers, with_adjacent_rope(fields, block, 0.5)), result);
}

}  // namespace

const Family families::glm = {.types = kGlm, .names = kGlmNames, .outer = "model.", .layers = "layers.", .read = read};
const Family families::glm4 = {
    .types = kGlm4, .names = kGlm4Names, .outer = "model.", .layers = "layers.", .read = read};

}  // namespace fovea
