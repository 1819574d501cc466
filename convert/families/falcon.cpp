// Falcon (Almazrouei et al. 2023), the older kind (one key-value head or as many as queries) and the newer (groups).
#include <cmath>

#include "convert/families/family.h"
#include "convert/families/heads.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kFalconTypes[] = {{"falcon", R"({"max_position_embeddings": 2048})"}};

constexpr TensorName kFalconNames[] = {
    {Role::token_embedding, "word_embeddings.weight"},
    {Role::final_norm, "ln_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#input_layernorm.weight"},
    {Role::query, "#self_attention.query_key_value.weight", Within::grouped},
    {Role::attention_output, "#self_attention.dense.weight"},
    {Role::feed_forward_norm, "#post_attention_layernorm.weight"},
    {Role::up, "#mlp.dense_h_to_4h.weight"},
    {Role::down, "#mlp.dense_4h_to_h.weight"},
};
/// If two norms stand side by side they are called after what reads them.
constexpr std::pair<std::string_view, std::string_view> kFalconOlder[] = {
    {"input_layernorm.weight", "ln_attn.weight"},
    {"input_layernorm.bias", "ln_attn.bias"},
    {"post_attention_layernorm.weight", "ln_mlp.weight"},
    {"post_attention_layernorm.bias", "ln_mlp.bias"}};

constexpr SizeNames kFalconSizes = {.n_kv_heads = nullptr,
                                    .d_ff = "ffn_hidden_size",
                                    .epsilon = "layer_norm_epsilon",
                                    .default_epsilon = 1e-5,
                                    .d_ff_may_lack = true,
                                    .default_positions = 2048};

/// The bits that bfloat16 keeps: the library rounds slopes to it.
float rounded_to_bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

void read_falcon(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kFalconSizes, Norm::layer, stack);
    read_output_head(fields, true, stack);
    const bool newer = fields.flag_or("new_decoder_architecture", false);
    if (newer)
        block.attention.n_kv_heads = fields.count_or("num_kv_heads", block.attention.n_heads);
    else if (fields.flag_or("multi_query", true))
        block.attention.n_kv_heads = 1;
    if (block.attention.n_kv_heads == 0 || block.attention.n_heads % block.attention.n_kv_heads != 0)
        fields.refuse("num_kv_heads", "a divisor of num_attention_heads, " + std::to_string(block.attention.n_heads));
    block.feed.activation = read_activation(fields, "activation", "gelu");
    block.feed.parallel = newer || fields.flag_or("parallel_attn", true);
    const std::uint32_t n_norms = fields.count_or("num_ln_in_parallel_attn", newer ? 2 : 1);
    if (n_norms != 1 && (n_norms != 2 || !newer)) fields.refuse("num_ln_in_parallel_attn", newer ? "1 or 2" : "1");
    block.feed.shared_norm = block.feed.parallel && n_norms == 1;
    const bool bias = fields.flag_or("bias", false);
    set_biases(block, bias);
    LayerShape layer{block, {}, {}};
    if (fields.flag_or("alibi", false)) {
        layer.block.attention.position = Position::alibi;
        layer.slopes = alibi_slopes(block.attention.n_heads);
        // Here scores are scaled after the slopes are added.
        for (float& slope : layer.slopes)
            slope = rounded_to_bf16(slope) / std::sqrt(static_cast<float>(block.attention.head_dim));
    } else {
        layer = with_rope(fields, block);
    }
    set_layers(fields, layer, result);
}

}  // namespace

const Family families::falcon = {.types = kFalconTypes,
                                 .names = kFalconNames,
                                 .outer = "transformer.",
                                 .layers = "h.",
                                 .read = read_falcon,
                                 .older = kFalconOlder,
                                 .heads = &kOlderDecoderHeads};

}  // namespace fovea
