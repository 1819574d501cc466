// StableLM (Bellagente et al. 2024) and StarCoder 2 (Lozhkov et al. 2024): Llama's frame with LayerNorms.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kStableLm[] = {{"stablelm", R"({"max_position_embeddings": 4096, "num_key_value_heads": 32})"}};
constexpr ModelType kStarcoder2[] = {{"starcoder2", R"({"max_position_embeddings": 4096, "num_key_value_heads": 2})"}};

constexpr auto kStableLmNames = kLlamaNames.with({
    {Role::query_norm, "#self_attn.q_layernorm.norms.*.weight"},
    {Role::key_norm, "#self_attn.k_layernorm.norms.*.weight"},
});

constexpr auto kStarcoder2Names = kLlamaNames.with({
    {Role::up, "#mlp.c_fc.weight"},
    {Role::down, "#mlp.c_proj.weight"},
});

void read_stablelm(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const SizeNames sizes = {.epsilon = "layer_norm_eps", .default_epsilon = 1e-5};
    Block block = read_gated(fields, sizes, false, stack, Norm::layer);
    block.feed.parallel = block.feed.shared_norm = fields.flag_or("use_parallel_residual", false);
    block.attention.query_bias = block.attention.key_bias = block.attention.value_bias =
        fields.flag_or("use_qkv_bias", false);
    if (fields.flag_or("qk_layernorm", false)) {
        block.attention.query_key_norm = Norm::layer;
        block.attention.head_norm = HeadNorm::each;
    }
    const LayerShape layer = with_rope(fields, block, nullptr, 0.25);
    set_layers(fields, layer, result);
}

void read_starcoder2(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.epsilon = "norm_epsilon", .default_epsilon = 1e-5}, Norm::layer, stack);
    read_output_head(fields, true, stack);
    block.feed.activation = read_activation(fields, "hidden_act", "gelu_pytorch_tanh");
    const bool bias = fields.flag_or("use_bias", true);
    set_biases(block, bias);
    if (fields.has("sliding_window")) block.attention.window = fields.count("sliding_window");
    set_layers(fields, with_rope(fields, block), result);
}

}  // namespace

const Family families::stablelm = {.types = kStableLm, .names = kStableLmNames, .read = read_stablelm};
const Family families::starcoder2 = {.types = kStarcoder2, .names = kStarcoder2Names, .read = read_starcoder2};

}  // namespace fovea
