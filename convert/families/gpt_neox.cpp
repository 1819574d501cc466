// GPT-NeoX (Black et al. 2022): attention and feed-forward in parallel, each behind a norm of its own. Persimmon (Adept 2023):
// one after the other, with norms of queries and keys. GPT-NeoX Japanese (ABEJA 2022): one after the other, with one bias: that
// of the last attention's output.
#include <array>

#include "convert/families/family.h"
#include "convert/families/heads.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGptNeoxTypes[] = {{"gpt_neox", R"({"max_position_embeddings": 2048})"}};
constexpr ModelType kPersimmon[] = {{"persimmon", R"({"max_position_embeddings": 16384, "hidden_act": "relu2"})"}};
constexpr ModelType kJapanese[] = {
    {"gpt_neox_japanese", R"({"max_position_embeddings": 2048, "intermediate_multiple_size": 4})"}};

constexpr auto kGptNeoxNames = names_of({
    {Role::token_embedding, "embed_in.weight"},
    {Role::final_norm, "final_layer_norm.weight"},
    {Role::output, "/embed_out.weight"},
    {Role::attention_norm, "#input_layernorm.weight"},
    {Role::query, "#attention.query_key_value.weight", Within::grouped},
    {Role::attention_output, "#attention.dense.weight"},
    {Role::feed_forward_norm, "#post_attention_layernorm.weight"},
    {Role::up, "#mlp.dense_h_to_4h.weight"},
    {Role::down, "#mlp.dense_4h_to_h.weight"},
});

constexpr auto kJapaneseNames = kGptNeoxNames.with({
    {Role::attention_output_bias, "#attention.dense_bias"},
});

constexpr TensorName kPersimmonNames[] = {
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::final_norm, "final_layernorm.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#input_layernorm.weight"},
    {Role::query, "#self_attn.query_key_value.weight", Within::grouped},
    {Role::query_norm, "#self_attn.q_layernorm.weight"},
    {Role::query_norm_bias, "#self_attn.q_layernorm.bias"},
    {Role::key_norm, "#self_attn.k_layernorm.weight"},
    {Role::key_norm_bias, "#self_attn.k_layernorm.bias"},
    {Role::attention_output, "#self_attn.dense.weight"},
    {Role::feed_forward_norm, "#post_attention_layernorm.weight"},
    {Role::up, "#mlp.dense_h_to_4h.weight"},
    {Role::down, "#mlp.dense_4h_to_h.weight"},
};

constexpr SizeNames kGptNeoxSizes = {.n_kv_heads = nullptr, .epsilon = "layer_norm_eps", .default_epsilon = 1e-5};

void read_gpt_neox(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kGptNeoxSizes, Norm::layer, stack);
    read_output_head(fields, false, stack);
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    block.feed.parallel = fields.flag_or("use_parallel_residual", true);
    block.feed.up_bias = block.feed.down_bias = true;
    set_biases(block.attention, fields.flag_or("attention_bias", true));
    LayerShape layer = with_rope(fields, block, nullptr, fields.number_or("rotary_pct", 0.0, 1.0, 0.25));
    if (fields.has("rotary_emb_base")) layer.rope.base = fields.number("rotary_emb_base", 1.01, 1e30);
    set_layers(fields, layer, result);
}

void read_japanese(const Fields& fields, const std::string&, HfConfig& result) {
    SizeNames names = kGptNeoxSizes;
    names.d_ff = "intermediate_multiple_size";
    names.d_ff_is_ratio = true;
    Stack& stack = result.stack();
    Block block = read_sizes(fields, names, Norm::layer, stack);
    read_output_head(fields, true, stack);
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    LayerShape layer = with_rope(fields, block, nullptr, fields.number_or("rotary_pct", 0.0, 1.0, 1.0));
    if (fields.has("rotary_emb_base")) layer.rope.base = fields.number("rotary_emb_base", 1.01, 1e30);
    std::vector<LayerShape> layers(stack.n_layers, layer);
    layers.back().block.attention.output_bias = true;
    set_layers(fields, layers, result);
}

void read_persimmon(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kGptNeoxSizes, Norm::layer, stack);
    read_output_head(fields, false, stack);
    block.feed.activation = read_activation(fields, "hidden_act", "relu2");
    block.attention.query_key_norm = fields.flag_or("qk_layernorm", true) ? Norm::layer : Norm::none;
    set_biases(block, true);
    set_layers(fields, with_rope(fields, block, nullptr, 0.5), result);
}

}  // namespace

const Family families::gpt_neox = {.types = kGptNeoxTypes,
                                   .names = kGptNeoxNames,
                                   .outer = "gpt_neox.",
                                   .read = read_gpt_neox,
                                   .heads = &kOlderDecoderHeads};

const Family families::gpt_neox_japanese = {
    .types = kJapanese, .names = kJapaneseNames, .outer = "gpt_neox_japanese.", .read = read_japanese};

const Family families::persimmon = {.types = kPersimmon, .names = kPersimmonNames, .read = read_persimmon};

}  // namespace fovea
