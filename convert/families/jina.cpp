// Jina's embedding models. 2 (Günther et al. 2023): BERT with ALiBi on both sides and a gated feed-forward part, whose config.json
// is BERT's but for its positions. 3 (Sturua et al. 2024), as transformers has it: XLM-R with rotary positions, without adapters.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr auto kAlibiNames = kBertNames.with({
    {Role::feed_forward_norm, "#mlp.layernorm.weight"},
    {Role::up, "#mlp.gated_layers.weight", Within::stacked},
    {Role::down, "#mlp.wo.weight"},
});

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
    set_layers(fields, with_slopes(block), result);
}

constexpr ModelType kRotaryTypes[] = {{"jina_embeddings_v3", R"({"rope_theta": 20000.0})"}};
constexpr TensorName kRotaryNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "emb_ln.weight"},
    {Role::attention_norm, "#norm1.weight"},
    {Role::query, "#mixer.Wqkv.weight", Within::stacked},
    {Role::attention_output, "#mixer.out_proj.weight"},
    {Role::feed_forward_norm, "#norm2.weight"},
    {Role::up, "#mlp.fc1.weight"},
    {Role::down, "#mlp.fc2.weight"},
};

void read_rotary(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kBertSizes, Norm::layer, stack);
    set_bert_norms(stack, block);
    stack.n_token_types = fields.count_or("type_vocab_size", 1);
    set_biases(block, true);
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    set_layers(fields, with_rope(fields, block), result);
}

}  // namespace

/// Its type is "bert" too: bert's `variant` chooses it.
const Family families::jina = bert_family({}, kAlibiNames, "bert.", read_alibi, &kBertHeadsOfClasses, {});

const Family families::jina_v3 = {.types = kRotaryTypes,
                                  .names = kRotaryNames,
                                  .outer = "roberta.",
                                  .layers = "encoder.layers.",
                                  .read = read_rotary,
                                  .stack = StackIndex::encoder,
                                  .ignores = is_of_head,
                                  .heads = &kRobertaHeads};

}  // namespace fovea
