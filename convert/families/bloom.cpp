// BLOOM (Scao et al. 2022) and MPT (MosaicML 2023): no positions but slopes that weigh distance (Press et al. 2022).
#include "convert/families/family.h"
#include "convert/families/heads.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kBloom[] = {{"bloom"}};
constexpr ModelType kMpt[] = {{"mpt", R"({"max_seq_len": 2048})"}};

constexpr TensorName kBloomNames[] = {
    {Role::token_embedding, "word_embeddings.weight"},
    {Role::embedding_norm, "word_embeddings_layernorm.weight"},
    {Role::final_norm, "ln_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#input_layernorm.weight"},
    {Role::query, "#self_attention.query_key_value.weight", Within::grouped},
    {Role::attention_output, "#self_attention.dense.weight"},
    {Role::feed_forward_norm, "#post_attention_layernorm.weight"},
    {Role::up, "#mlp.dense_h_to_4h.weight"},
    {Role::down, "#mlp.dense_4h_to_h.weight"},
};

constexpr TensorName kMptNames[] = {
    {Role::token_embedding, "wte.weight"},
    {Role::final_norm, "norm_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#norm_1.weight"},
    {Role::query, "#attn.Wqkv.weight", Within::stacked},
    {Role::attention_output, "#attn.out_proj.weight"},
    {Role::feed_forward_norm, "#norm_2.weight"},
    {Role::up, "#ffn.up_proj.weight"},
    {Role::down, "#ffn.down_proj.weight"},
};

constexpr SizeNames kBloomSizes = {.n_layers = "n_layer",
                                   .n_heads = "n_head",
                                   .n_kv_heads = nullptr,
                                   .d_ff = "n_inner",
                                   .max_positions = "seq_length",
                                   .epsilon = "layer_norm_epsilon",
                                   .default_epsilon = 1e-5,
                                   .d_ff_may_lack = true,
                                   .default_positions = 2048};
constexpr SizeNames kMptSizes = {.d_model = "d_model",
                                 .n_layers = "n_layers",
                                 .n_heads = "n_heads",
                                 .n_kv_heads = nullptr,
                                 .d_ff = "expansion_ratio",
                                 .max_positions = "max_seq_len",
                                 .epsilon = "layer_norm_epsilon",
                                 .default_epsilon = 1e-5,
                                 .d_ff_is_ratio = true,
                                 .d_ff_may_lack = true};

void read_bloom(const Fields& fields, const std::string&, HfConfig& result) {
    refuse_true(fields, "apply_residual_connection_post_layernorm");
    Stack& stack = result.stack();
    SizeNames sizes = kBloomSizes;  // the first checkpoints spell some otherwise
    if (fields.has("n_embed")) sizes.d_model = "n_embed";
    if (fields.has("num_attention_heads")) sizes.n_heads = "num_attention_heads";
    if (fields.has("num_hidden_layers")) sizes.n_layers = "num_hidden_layers";
    Block block = read_sizes(fields, sizes, Norm::layer, stack);
    read_output_head(fields, true, stack);
    stack.embedding_norm = Norm::layer;
    stack.embedding_norm_bias = true;
    block.feed.activation = Activation::gelu_tanh;
    block.attention.position = Position::alibi;
    set_biases(block, true);
    set_layers(fields, with_slopes(block), result);
}

void read_mpt(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kMptSizes, Norm::layer, stack);
    read_output_head(fields, true, stack);
    if (!fields.flag_or("no_bias", true)) fields.refuse("no_bias", "true");
    refuse_present(fields, "logit_scale");
    stack.final_norm_bias = block.norm_bias = false;
    block.feed.activation = Activation::gelu;
    block.attention.position = Position::alibi;
    if (fields.has("attn_config")) {
        const Fields attention = fields.object("attn_config");
        for (const char* name : {"qk_ln", "prefix_lm", "attn_uses_sequence_id"}) refuse_true(attention, name);
        if (attention.text_or("attn_type", "multihead_attention") != "multihead_attention")
            attention.refuse("attn_type", "multihead_attention");
        if (!attention.flag_or("alibi", true)) attention.refuse("alibi", "true");
        if (attention.number_or("alibi_bias_max", 1e-3, 1e3, 8.0) != 8.0)
            result.source.notes.push_back("alibi_bias_max: taken as 8, as transformers does whatever config.json says");
        block.attention.projection_clip = static_cast<float>(attention.number_or("clip_qkv", 0.0, 1e9, 0.0));
        block.attention.softmax_scale = static_cast<float>(attention.number_or("softmax_scale", -1e9, 1e9, 0.0));
    }
    set_layers(fields, with_slopes(block), result);
}

}  // namespace

const Family families::bloom = {.types = kBloom,
                                .names = kBloomNames,
                                .outer = "transformer.",
                                .layers = "h.",
                                .read = read_bloom,
                                .heads = &kOlderDecoderHeads};
const Family families::mpt = {.types = kMpt,
                              .names = kMptNames,
                              .outer = "transformer.",
                              .layers = "blocks.",
                              .read = read_mpt,
                              .heads = &kOlderDecoderHeads};

}  // namespace fovea
