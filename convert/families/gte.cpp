// The encoders of GTE (Zhang et al. 2024): BERT's frame with rotary positions and a gated feed-forward part.
#include "convert/families/bert_names.h"
#include "host/base/exact_math.h"

namespace fovea {
namespace {

constexpr ModelType kGteTypes[] = {{"new", R"({"type_vocab_size": 1, "max_position_embeddings": 2048})"},
                                   {"gte", R"({"type_vocab_size": 1, "max_position_embeddings": 2048})"}};

constexpr TensorName kGteNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "embeddings.LayerNorm.weight"},
    {Role::attention_norm, "#attn_ln.weight"},
    {Role::query, "#attention.qkv_proj.weight", Within::stacked},
    {Role::attention_output, "#attention.o_proj.weight"},
    {Role::feed_forward_norm, "#mlp_ln.weight"},
    {Role::up, "#mlp.up_gate_proj.weight", Within::above_gate},
    {Role::down, "#mlp.down_proj.weight"},
};

/// Fixed NTK scaling (Su 2023, https://kexue.fm/archives/9706, eq. 6): another base, and positions closer together.
LayerShape with_ntk(const Fields& fields, Block block) {
    const Fields scaling = fields.object("rope_scaling");
    refuse_present(scaling, "mixed_b");
    const double factor = scaling.number("factor", 1.0, 1e6);
    LayerShape layer = with_rope(fields.with("rope_scaling", nullptr), block);
    layer.rope.base *= factor;
    layer.rope.scaling = RopeScaling::linear;
    layer.rope.factor = exact_exp(2.0 / layer.block.attention.rotary_dim * exact_log(factor));
    return layer;
}

void read_gte(const Fields& fields, const std::string&, HfConfig& result) {
    if (fields.text_or("position_embedding_type", "rope") != "rope") fields.refuse("position_embedding_type", "rope");
    if (fields.text_or("layer_norm_type", "layer_norm") != "layer_norm") fields.refuse("layer_norm_type", "layer_norm");
    if (!fields.flag_or("pack_qkv", true)) fields.refuse("pack_qkv", "true");
    refuse_true(fields, "logn_attention_scale");
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kBertSizes, Norm::layer, stack);
    set_bert_norms(stack, block);
    stack.n_token_types = fields.count("type_vocab_size", 0);
    set_biases(block.attention, true);
    block.feed.gated = block.feed.down_bias = true;
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    const bool ntk = fields.has("rope_scaling") && fields.object("rope_scaling").text_or("type", "") == "ntk";
    set_layers(fields, ntk ? with_ntk(fields, block) : with_rope(fields, block), result);
}

}  // namespace

const Family families::gte = bert_family(kGteTypes, kGteNames, "new.", read_gte, &kBertHeadsOfClasses, {});

}  // namespace fovea
