// Llama with other names: EXAONE 3 (LG AI Research 2024), and InternLM 2 (Cai et al. 2024), whose classes come with its
// checkpoints.
#include "convert/families/family.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kExaone[] = {
    {"exaone", R"({"max_position_embeddings": 4096, "num_key_value_heads": 8, "rope_theta": 500000.0})"}};
constexpr ModelType kInternLm2[] = {{"internlm2", R"({"max_position_embeddings": 2048})"}};

constexpr TensorName kExaoneNames[] = {
    {Role::token_embedding, "wte.weight"},
    {Role::final_norm, "ln_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#ln_1.weight"},
    {Role::query, "#attn.attention.q_proj.weight"},
    {Role::key, "#attn.attention.k_proj.weight"},
    {Role::value, "#attn.attention.v_proj.weight"},
    {Role::attention_output, "#attn.attention.out_proj.weight"},
    {Role::feed_forward_norm, "#ln_2.weight"},
    {Role::up, "#mlp.c_fc_1.weight", Within::alone, "#mlp.c_fc_0.weight"},
    {Role::down, "#mlp.c_proj.weight"},
};

constexpr TensorName kInternLm2Names[] = {
    {Role::token_embedding, "tok_embeddings.weight"},
    {Role::final_norm, "norm.weight"},
    {Role::output, "/output.weight"},
    {Role::attention_norm, "#attention_norm.weight"},
    {Role::query, "#attention.wqkv.weight", Within::grouped},
    {Role::attention_output, "#attention.wo.weight"},
    {Role::feed_forward_norm, "#ffn_norm.weight"},
    {Role::up, "#feed_forward.w3.weight", Within::alone, "#feed_forward.w1.weight"},
    {Role::down, "#feed_forward.w2.weight"},
};

void read_layers(const Fields& fields, const SizeNames& sizes, const char* activation, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, sizes, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.feed.activation = read_activation(fields, activation, "silu");
    block.feed.gated = true;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    block.feed.up_bias = block.feed.gate_bias = block.feed.down_bias = fields.flag_or("mlp_bias", false);
    set_layers(fields, with_rope(fields, block), result);
}

/// Its first files spell some fields as GPT-2 does.
void read_exaone(const Fields& fields, const std::string&, HfConfig& result) {
    const auto spelled = [&](const char* first, const char* now) { return fields.has(first) ? first : now; };
    read_layers(fields,
                {.n_layers = spelled("num_layers", "num_hidden_layers"),
                 .epsilon = spelled("layer_norm_epsilon", "rms_norm_eps"),
                 .default_epsilon = 1e-5},
                spelled("activation_function", "hidden_act"), result);
}

void read_internlm2(const Fields& fields, const std::string&, HfConfig& result) {
    read_layers(fields.with("attention_bias", fields.flag_or("bias", true)).with("mlp_bias", false), {}, "hidden_act",
                result);
}

}  // namespace

const Family families::exaone = {
    .types = kExaone, .names = kExaoneNames, .outer = "transformer.", .layers = "h.", .read = read_exaone};
const Family families::internlm2 = {.types = kInternLm2, .names = kInternLm2Names, .read = read_internlm2};

}  // namespace fovea
