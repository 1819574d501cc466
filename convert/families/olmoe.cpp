// OLMoE (Muennighoff et al. 2024): experts, and norms of queries and keys whole.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kModelTypes[] = {{"olmoe", R"({"max_position_embeddings": 4096, "num_experts_per_tok": 8})"}};

constexpr auto kNames = with_llama_names({
    {Role::router, "#mlp.gate.weight"},
    {Role::expert_up, "#mlp.experts.*.up_proj.weight", Within::alone, "#mlp.experts.*.gate_proj.weight"},
    {Role::expert_down, "#mlp.experts.*.down_proj.weight"},
});

void read(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.default_epsilon = 1e-5}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.query_key_norm = Norm::rms;
    block.head_norm = HeadNorm::together;
    block.projection_clip = static_cast<float>(fields.number_or("clip_qkv", 0.0, 1e9, 0.0));
    block.activation = read_activation(fields, "hidden_act", "silu");
    block.gated = true;
    block.query_bias = block.key_bias = block.value_bias = block.output_bias = fields.flag_or("attention_bias", false);
    read_experts(fields, {}, false, block);
    set_layers(fields, std::vector<LayerShape>(stack.n_layers, with_rope(fields, block)), result);
}

}  // namespace

const Family families::olmoe = {
    .types = kModelTypes, .names = kNames, .outer = "model.", .layers = "layers.", .read = read};

}  // namespace fovea
