// Phi (Gunasekar et al. 2023): attention and feed-forward in parallel behind one norm. Phi 3 is Llama with fused matrices.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kPhi[] = {{"phi", R"({"max_position_embeddings": 2048})"}};
constexpr ModelType kPhi3[] = {
    {"phi3", R"({"max_position_embeddings": 4096, "original_max_position_embeddings": 4096})"}};

constexpr auto kPhiNames = kLlamaNames.with({
    {Role::final_norm, "final_layernorm.weight"},
    {Role::output_bias, "/lm_head.bias"},
    {Role::query_norm, "#self_attn.q_layernorm.weight"},
    {Role::query_norm_bias, "#self_attn.q_layernorm.bias"},
    {Role::key_norm, "#self_attn.k_layernorm.weight"},
    {Role::key_norm_bias, "#self_attn.k_layernorm.bias"},
    {Role::attention_output, "#self_attn.dense.weight"},
    {Role::up, "#mlp.fc1.weight"},
    {Role::down, "#mlp.fc2.weight"},
});

constexpr auto kPhi3Names = kLlamaNames.with({
    {Role::query, "#self_attn.qkv_proj.weight", Within::stacked},
    {Role::key, "#self_attn.qkv_proj.weight", Within::stacked},
    {Role::value, "#self_attn.qkv_proj.weight", Within::stacked},
    {Role::up, "#mlp.gate_up_proj.weight", Within::stacked},
});

void read_phi(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.epsilon = "layer_norm_eps", .default_epsilon = 1e-5}, Norm::layer, stack);
    read_output_head(fields, false, stack);
    stack.output_bias = true;
    block.feed.activation = read_activation(fields, "hidden_act", "gelu_new");
    block.feed.parallel = block.feed.shared_norm = true;
    block.attention.query_key_norm = fields.flag_or("qk_layernorm", false) ? Norm::layer : Norm::none;
    set_biases(block, true);
    LayerShape layer = with_rope(fields, block, nullptr, 0.5);
    set_layers(fields, layer, result);
}

void read_phi3(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    if (fields.has("sliding_window")) block.attention.window = fields.count("sliding_window");
    set_layers(fields, with_rope(fields, block, nullptr, 1.0), result);
}

}  // namespace

const Family families::phi = {.types = kPhi, .names = kPhiNames, .read = read_phi};
const Family families::phi3 = {.types = kPhi3, .names = kPhi3Names, .read = read_phi3};

}  // namespace fovea
