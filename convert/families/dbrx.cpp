// DBRX (Databricks 2024): layer norms without biases, clipped projections in one matrix, experts' matrices one below the other.
#include "convert/families/family.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kDbrx[] = {{"dbrx", R"({"max_seq_len": 2048, "attn_config": {}, "ffn_config": {}})"}};

constexpr TensorName kDbrxNames[] = {
    {Role::token_embedding, "wte.weight"},
    {Role::final_norm, "norm_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#norm_attn_norm.norm_1.weight"},
    {Role::query, "#norm_attn_norm.attn.Wqkv.weight", Within::stacked},
    {Role::attention_output, "#norm_attn_norm.attn.out_proj.weight"},
    {Role::feed_forward_norm, "#norm_attn_norm.norm_2.weight"},
    {Role::router, "#ffn.router.layer.weight"},
    {Role::expert_up, "#ffn.experts.mlp.v1", Within::below, "#ffn.experts.mlp.w1"},
    {Role::expert_down, "#ffn.experts.mlp.w2", Within::below},
};

/// The fields of its parts by the usual names. Newer files have the rotary base among the model's own fields.
Fields with_parts(const Fields& fields, const Fields& attention, const Fields& ffn) {
    const bool has_rope = fields.has("rope_parameters") || fields.has("rope_theta") || !attention.has("rope_theta");
    Fields all = fields.with("num_key_value_heads", attention.count_or("kv_n_heads", 1))
                     .with("intermediate_size", ffn.count_or("ffn_hidden_size", 3584))
                     .with("num_experts", ffn.count_or("moe_num_experts", 4))
                     .with("num_experts_per_tok", ffn.count_or("moe_top_k", 1))
                     .with("max_position_embeddings", fields.count("max_seq_len"))
                     .with("head_dim", nullptr)
                     .with("layer_norm_eps", 1e-5);
    return has_rope ? all : all.with("rope_theta", attention.number("rope_theta", 1.01, 1e30));
}

void read_dbrx(const Fields& fields, const std::string&, HfConfig& result) {
    const Fields attention = fields.object("attn_config"), ffn = fields.object("ffn_config");
    refuse_true(fields, "tie_word_embeddings");
    const Fields all = with_parts(fields, attention, ffn);
    Stack& stack = result.stack();
    Block block = read_sizes(
        all, {.d_model = "d_model", .n_layers = "n_layers", .n_heads = "n_heads", .epsilon = "layer_norm_eps"},
        Norm::layer, stack);
    read_output_head(all, false, stack);
    stack.final_norm_bias = block.norm_bias = false;
    if (attention.has("clip_qkv"))
        block.attention.projection_clip = static_cast<float>(attention.number("clip_qkv", 1e-6, 1e9));
    block.feed.gated = true;
    block.feed.activation =
        ffn.has("ffn_act_fn") ? read_activation(ffn.object("ffn_act_fn"), "name", "silu") : Activation::silu;
    read_experts(all, {}, false, block);
    const double power = ffn.number_or("moe_normalize_expert_weights", 0.0, 1e6, 1.0);
    block.experts.normalize =
        !ffn.json().contains("moe_normalize_expert_weights") || ffn.has("moe_normalize_expert_weights");
    if (power != 1.0) ffn.refuse("moe_normalize_expert_weights", "1 or null");
    set_layers(fields, with_rope(all, block), result);
}

}  // namespace

const Family families::dbrx = {
    .types = kDbrx, .names = kDbrxNames, .outer = "transformer.", .layers = "blocks.", .read = read_dbrx};

}  // namespace fovea
