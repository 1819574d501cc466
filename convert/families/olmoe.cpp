// OLMoE (Muennighoff et al. 2024): experts, and norms of queries and keys whole. FlexOlmo (Shi et al. 2025) norms what each part
// adds, as OLMo 2 does.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kOlmoeTypes[] = {{"olmoe", R"({"max_position_embeddings": 4096, "num_experts_per_tok": 8})"}};

constexpr ModelType kFlexOlmo[] = {
    {"flex_olmo", R"({"max_position_embeddings": 4096, "num_experts_per_tok": 5, "rope_theta": 500000.0})"}};

constexpr auto kFlexNames = kExpertNames.with({
    {Role::attention_norm, "#post_attention_layernorm.weight"},
    {Role::feed_forward_norm, "#post_feedforward_layernorm.weight"},
});

void read_olmoe(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_flex = type == "flex_olmo";
    Block block = read_sizes(fields, {.default_epsilon = is_flex ? 1e-6 : 1e-5}, Norm::rms, stack);
    if (is_flex) block.norm_place = NormPlace::output;
    read_output_head(fields, false, stack);
    block.attention.query_key_norm = Norm::rms;
    block.attention.head_norm = HeadNorm::together;
    if (!is_flex) block.attention.projection_clip = static_cast<float>(fields.number_or("clip_qkv", 0.0, 1e9, 0.0));
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.feed.gated = true;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    read_experts(fields, {}, false, block);
    set_layers(fields, with_rope(fields, block), result);
}

}  // namespace

const Family families::olmoe = {.types = kOlmoeTypes, .names = kExpertNames, .read = read_olmoe};

const Family families::flex_olmo = {.types = kFlexOlmo, .names = kFlexNames, .read = read_olmoe};

}  // namespace fovea
