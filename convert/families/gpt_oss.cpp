// gpt-oss (OpenAI 2025): experts with biases and a clamped gate, sinks, windows in every other layer. All experts are one tensor,
// of floats [expert, column, row] or of MXFP4 blocks [expert, row, group]; rows of gate and up alternate.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGptOssTypes[] = {
    {"gpt_oss",
     R"({"max_position_embeddings": 131072, "sliding_window": 128, "num_key_value_heads": 8, "head_dim": 64,
         "num_experts_per_tok": 4, "rope_theta": 150000.0,
         "rope_parameters": {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "truncate": false,
                             "original_max_position_embeddings": 4096}})"}};

constexpr auto kGptOssNames = kLlamaNames.with({
    {Role::attention_sinks, "#self_attn.sinks"},
    {Role::router, "#mlp.router.weight"},
    {Role::expert_up, "#mlp.experts.gate_up_proj", Within::packed},
    {Role::expert_up_bias, "#mlp.experts.gate_up_proj_bias", Within::packed},
    {Role::expert_down, "#mlp.experts.down_proj", Within::packed},
    {Role::expert_down_bias, "#mlp.experts.down_proj_bias", Within::packed},
});

/// The kernels have these numbers.
void check_gate(const Fields& fields) {
    if (read_activation(fields, "hidden_act", "silu") != Activation::silu) fields.refuse("hidden_act", "silu");
    for (const auto& [name, number] : {std::pair{"swiglu_alpha", 1.702}, std::pair{"swiglu_limit", 7.0}})
        if (fields.number_or(name, -1e9, 1e9, number) != number) fields.refuse(name, std::to_string(number));
}

void read_gpt_oss(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.default_epsilon = 1e-5}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    check_gate(fields);
    block.feed.activation = Activation::silu_clamped;
    block.feed.gated = true;
    block.attention.attention_sinks = true;
    set_biases(block.attention, fields.flag_or("attention_bias", true));
    read_experts(fields, {.n_experts = "num_local_experts"}, true, block);
    block.experts.router_bias = block.feed.up_bias = block.feed.gate_bias = block.feed.down_bias = true;

    const std::vector<bool> sliding = sliding_layers_or(fields, all_but_every(2, stack.n_layers));
    std::vector<LayerShape> layers(stack.n_layers, with_rope(fields, block));
    if (fields.has("sliding_window")) set_windows(fields, sliding, layers);
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::gpt_oss = {
    .types = kGptOssTypes, .names = kGptOssNames, .read = read_gpt_oss, .reads_mxfp4 = true};

}  // namespace fovea
