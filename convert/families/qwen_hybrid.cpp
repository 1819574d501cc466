// Qwen 3 Next and 3.5 (Qwen Team 2025): the gated delta rule, and in every fourth layer attention with an output gate; maybe with
// experts, of which one is for every row.
#include "convert/families/llama_names.h"
#include "convert/families/recurrent.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kNextTypes[] = {
    {"qwen3_next",
     R"({"max_position_embeddings": 32768, "num_key_value_heads": 2, "head_dim": 256, "linear_conv_kernel_dim": 4,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
         "linear_num_value_heads": 32, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
         "num_experts_per_tok": 10, "num_experts": 512, "norm_topk_prob": true})"}};
constexpr ModelType kQwen35Types[] = {
    {"qwen3_5_text",
     R"({"max_position_embeddings": 32768, "num_key_value_heads": 4, "head_dim": 256, "linear_conv_kernel_dim": 4,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
         "linear_num_value_heads": 32})"},
    {"qwen3_5_moe_text",
     R"({"max_position_embeddings": 32768, "num_key_value_heads": 2, "head_dim": 256, "linear_conv_kernel_dim": 4,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
         "linear_num_value_heads": 32, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
         "num_experts_per_tok": 8, "num_experts": 256})"}};

constexpr auto kHybridNames = kLlamaNames.with({
    {Role::query, "#self_attn.q_proj.weight", Within::gate_beside},
    {Role::attention_gate, "#self_attn.q_proj.weight", Within::gate_beside},
    {Role::recurrent_norm, "#input_layernorm.weight"},
    {Role::recurrent_kernel, "#linear_attn.conv1d.weight"},
    {Role::recurrent_step_bias, "#linear_attn.dt_bias"},
    {Role::recurrent_decay, "#linear_attn.A_log"},
    {Role::recurrent_state_norm, "#linear_attn.norm.weight"},
    {Role::recurrent_output, "#linear_attn.out_proj.weight"},
    {Role::router, "#mlp.gate.weight"},
    {Role::expert_up, "#mlp.experts.*.up_proj.weight", Within::alone, "#mlp.experts.*.gate_proj.weight"},
    {Role::expert_down, "#mlp.experts.*.down_proj.weight"},
    {Role::shared_gate, "#mlp.shared_expert_gate.weight"},
    {Role::shared_up, "#mlp.shared_expert.up_proj.weight", Within::alone, "#mlp.shared_expert.gate_proj.weight"},
    {Role::shared_down, "#mlp.shared_expert.down_proj.weight"},
});
constexpr auto kNextNames = kHybridNames.with({
    {Role::recurrent_query, "#linear_attn.in_proj_qkvz.weight", Within::joined},
    {Role::recurrent_key, "#linear_attn.in_proj_qkvz.weight", Within::joined},
    {Role::recurrent_value, "#linear_attn.in_proj_qkvz.weight", Within::joined},
    {Role::recurrent_gate, "#linear_attn.in_proj_qkvz.weight", Within::joined},
    {Role::recurrent_step, "#linear_attn.in_proj_ba.weight", Within::joined},
    {Role::recurrent_rate, "#linear_attn.in_proj_ba.weight", Within::joined},
});
constexpr auto kQwen35Names = kHybridNames.with({
    {Role::recurrent_query, "#linear_attn.in_proj_qkv.weight", Within::joined},
    {Role::recurrent_key, "#linear_attn.in_proj_qkv.weight", Within::joined},
    {Role::recurrent_value, "#linear_attn.in_proj_qkv.weight", Within::joined},
    {Role::recurrent_gate, "#linear_attn.in_proj_z.weight"},
    {Role::recurrent_step, "#linear_attn.in_proj_a.weight"},
    {Role::recurrent_rate, "#linear_attn.in_proj_b.weight"},
});

std::vector<bool> recurrent_layers(const Fields& fields, std::uint32_t n_layers) {
    if (fields.has("layer_types")) return read_recurrent_layers(fields, "linear_attention", n_layers);
    return all_but_every(fields.count_or("full_attention_interval", 4), n_layers);
}

void read_hybrid(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_next = type == "qwen3_next", has_experts = type != "qwen3_5_text";
    Block block = read_gated(fields, {.d_ff_may_lack = type == "qwen3_5_moe_text"}, false, stack);
    if (block.feed.activation != Activation::silu) fields.refuse("hidden_act", "silu");
    refuse_true(fields, "attention_bias");
    block.attention.query_key_norm = Norm::rms;
    block.attention.output_gate = OutputGate::sigmoid;
    stack.recurrent = read_delta(fields);
    if (is_next)
        result.recurrent_rows = {
            {{Role::recurrent_query, Role::recurrent_key, Role::recurrent_value, Role::recurrent_gate}, true},
            {{Role::recurrent_rate, Role::recurrent_step}, true}};
    else
        result.recurrent_rows = {{{Role::recurrent_query, Role::recurrent_key, Role::recurrent_value}}};

    Block sparse = block;
    if (has_experts)
        read_experts(fields, {.d_ff = "moe_intermediate_size", .shared_d_ff = "shared_expert_intermediate_size"},
                     !is_next, sparse);
    std::vector<bool> is_sparse(stack.n_layers, has_experts);
    if (is_next) is_sparse = read_sparse_layers(fields, stack.n_layers);
    const std::vector<bool> recurs = recurrent_layers(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = is_sparse[i] ? sparse : block;
        layers.push_back(recurs[i] ? LayerShape{recurrent_block(own), {}, {}} : with_rope(fields, own, nullptr, 0.25));
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::qwen3_next = {.types = kNextTypes,
                                     .names = kNextNames,
                                     .read = read_hybrid,
                                     .norms_less_one = true,
                                     .ignores = is_of_further_tokens};
const Family families::qwen3_5 = {.types = kQwen35Types,
                                  .names = kQwen35Names,
                                  .read = read_hybrid,
                                  .norms_less_one = true,
                                  .ignores = is_of_further_tokens};

}  // namespace fovea
