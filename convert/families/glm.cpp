// GLM 4 (GLM Team 2024): adjacent dims turned, half of each head; the 2025 generation norms on both sides of each part,
// and is the model of texts in GLM 4.1V.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGlm[] = {
    {"glm",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"}};
constexpr ModelType kGlm4[] = {
    {"glm4",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"},
    {"glm4v_text", R"({"max_position_embeddings": 32768, "num_key_value_heads": 2, "rms_norm_eps": 1e-5})"}};

constexpr auto kGlmNames = kLlamaNames.with({
    {Role::up, "#mlp.gate_up_proj.weight", Within::stacked},
});
constexpr auto kGlm4Names = kLlamaNames.with({
    {Role::attention_post_norm, "#post_self_attn_layernorm.weight"},
    {Role::feed_forward_post_norm, "#post_mlp_layernorm.weight"},
    {Role::up, "#mlp.gate_up_proj.weight", Within::stacked},
});

void read_glm(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1.5625e-7}, false, stack);
    const bool of_pictures = type == "glm4v_text";  // GLM 4.1V's model of texts
    block.norm_place = type == "glm" ? NormPlace::pre : NormPlace::both;
    block.attention.query_bias = block.attention.key_bias = block.attention.value_bias =
        of_pictures || fields.flag_or("attention_bias", false);
    const LayerShape layer = with_adjacent_rope(fields, block, of_pictures ? 1.0 : 0.5);
    set_layers(fields, layer, result);
}

}  // namespace

const Family families::glm = {.types = kGlm, .names = kGlmNames, .read = read_glm};
const Family families::glm4 = {.types = kGlm4, .names = kGlm4Names, .read = read_glm};

}  // namespace fovea
