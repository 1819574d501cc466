// Jina's embedding models. 2 (Günther et al. 2023): BERT with ALiBi on both sides and a gated feed-forward part, whose config.json
// is BERT's but for its positions. 3 (Sturua et al. 2024), as transformers has it: XLM-R with rotary positions, without adapters.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr TensorName kAlibiNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "embeddings.LayerNorm.weight"},
    {Role::embedding_norm_bias, "embeddings.LayerNorm.bias"},
    {Role::attention_norm, "#attention.output.LayerNorm.weight"},
    {Role::attention_norm_bias, "#attention.output.LayerNorm.bias"},
    {Role::query, "#attention.self.query.weight"},
    {Role::query_bias, "#attention.self.query.bias"},
    {Role::key, "#attention.self.key.weight"},
    {Role::key_bias, "#attention.self.key.bias"},
    {Role::value, "#attention.self.value.weight"},
    {Role::value_bias, "#attention.self.value.bias"},
    {Role::attention_output, "#attention.output.dense.weight"},
    {Role::attention_output_bias, "#attention.output.dense.bias"},
    {Role::feed_forward_norm, "#mlp.layernorm.weight"},
    {Role::feed_forward_norm_bias, "#mlp.layernorm.bias"},
    {Role::up, "#mlp.gated_layers.weight", Within::stacked},
    {Role::down, "#mlp.wo.weight"},
    {Role::down_bias, "#mlp.wo.bias"},
};

void read_alibi(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kBertSizes, Norm::layer, stack);
    set_bert_norms(stack, block);
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    set_biases(block.attention, true);
    block.feed.gated = block.feed.down_bias = true;
    block.attention.position = Position::alibi;
    const std::string gate = fields.text_or("feed_forward_type", "original");
    if (gate != "geglu" && gate != "reglu") fields.refuse("feed_forward_type", "geglu or reglu");
    block.feed.activation = gate == "geglu" ? Activation::gelu : Activation::relu;
    set_layers(fields, std::vector<LayerShape>(stack.n_layers, with_slopes(block)), result);
}

constexpr ModelType kRotaryTypes[] = {{"jina_embeddings_v3"}};
constexpr TensorName kRotaryNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "emb_ln.weight"},
    {Role::embedding_norm_bias, "emb_ln.bias"},
    {Role::attention_norm, "#norm1.weight"},
    {Role::attention_norm_bias, "#norm1.bias"},
    {Role::query, "#mixer.Wqkv.weight", Within::stacked},
    {Role::query_bias, "#mixer.Wqkv.bias", Within::stacked},
    {Role::key, "#mixer.Wqkv.weight", Within::stacked},
    {Role::key_bias, "#mixer.Wqkv.bias", Within::stacked},
    {Role::value, "#mixer.Wqkv.weight", Within::stacked},
    {Role::value_bias, "#mixer.Wqkv.bias", Within::stacked},
    {Role::attention_output, "#mixer.out_proj.weight"},
    {Role::attention_output_bias, "#mixer.out_proj.bias"},
    {Role::feed_forward_norm, "#norm2.weight"},
    {Role::feed_forward_norm_bias, "#norm2.bias"},
    {Role::up, "#mlp.fc1.weight"},
    {Role::up_bias, "#mlp.fc1.bias"},
    {Role::down, "#mlp.fc2.weight"},
    {Role::down_bias, "#mlp.fc2.bias"},
};

void read_rotary(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kBertSizes, Norm::layer, stack);
    set_bert_norms(stack, block);
    stack.n_token_types = fields.count_or("type_vocab_size", 1);
    set_biases(block, true);
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    LayerShape layer = with_rope(fields, block);
    if (!fields.has("rope_parameters") && !fields.has("rope_theta")) layer.rope.base = 20000.0;
    set_layers(fields, std::vector<LayerShape>(stack.n_layers, layer), result);
}

constexpr HeadLayer kClasses[] = {{"pooler.dense", Activation::tanh}, {"/classifier"}};
constexpr HeadLayer kRotaryClasses[] = {{"/classifier.dense", Activation::tanh}, {"/classifier.out_proj"}};
constexpr HeadLayer kRotaryMasked[] = {{"/lm_head.dense", Activation::gelu, "/lm_head.layer_norm"}};
constexpr HeadForms kAlibiHeads = {.classes = kClasses, .words = kLabels, .answers = kAnswers};
constexpr HeadForms kRotaryHeads = {.classes = kRotaryClasses,
                                    .words = kLabels,
                                    .answers = kAnswers,
                                    .masked = kRotaryMasked,
                                    .decoder = "/lm_head.decoder",
                                    .decoder_bias = "/lm_head.bias"};

}  // namespace

/// Its type is "bert" too: bert's `variant` chooses it.
const Family families::jina = {.types = {},
                               .names = kAlibiNames,
                               .outer = "bert.",
                               .layers = "encoder.layer.",
                               .read = read_alibi,
                               .stack = StackIndex::encoder,
                               .ignores = is_of_head,
                               .heads = &kAlibiHeads};

const Family families::jina_v3 = {.types = kRotaryTypes,
                                  .names = kRotaryNames,
                                  .outer = "roberta.",
                                  .layers = "encoder.layers.",
                                  .read = read_rotary,
                                  .stack = StackIndex::encoder,
                                  .ignores = is_of_head,
                                  .heads = &kRotaryHeads};

}  // namespace fovea
