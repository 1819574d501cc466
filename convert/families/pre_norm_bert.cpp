// BERT's encoder with norms before each part and one behind all: Megatron-BERT (Shoeybi et al. 2019), XLM-RoBERTa XL (Goyal et
// al. 2021) and RoBERTa-PreLayerNorm.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kMegatronTypes[] = {{"megatron-bert", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kLargeTypes[] = {
    {"xlm-roberta-xl", R"({"max_position_embeddings": 514, "layer_norm_eps": 1e-5, "type_vocab_size": 1})"}};
constexpr ModelType kPreNormRobertaTypes[] = {{"roberta-prelayernorm", R"({"max_position_embeddings": 512})"}};

constexpr auto kMegatronNames = kBertNames.with({
    {Role::attention_norm, "#attention.ln.weight"},
    {Role::feed_forward_norm, "#ln.weight"},
    {Role::final_norm, "encoder.ln.weight"},
});
constexpr auto kLargeNames = kBertNames.with({
    {Role::attention_norm, "#attention.self_attn_layer_norm.weight"},
    {Role::feed_forward_norm, "#LayerNorm.weight"},
    {Role::final_norm, "encoder.LayerNorm.weight"},
});
constexpr auto kRobertaNames = kBertNames.with({
    {Role::attention_norm, "#attention.LayerNorm.weight"},
    {Role::feed_forward_norm, "#intermediate.LayerNorm.weight"},
    {Role::final_norm, "LayerNorm.weight"},
});

void read_pre_norm_bert(const Fields& fields, const std::string& type, HfConfig& result) {
    Block block = read_bert_stack(fields, kBertSizes, result);
    Stack& stack = result.stack();
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    if (type != "roberta-prelayernorm") stack.embedding_norm = Norm::none, stack.embedding_norm_bias = false;
    stack.final_norm = Norm::layer;
    stack.final_norm_bias = true;
    block.norm_place = NormPlace::pre;
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    if (type != "megatron-bert")
        skip_padding_positions(fields, fields.has("pad_token_id") ? fields.count("pad_token_id", 0) : 1, result);
    set_layers(fields, LayerShape{block}, result);
}

}  // namespace

const Family families::megatron_bert =
    bert_family(kMegatronTypes, kMegatronNames, "bert.", read_pre_norm_bert, &kBertHeads, {});

const Family families::xlm_roberta_xl =
    bert_family(kLargeTypes, kLargeNames, "roberta.", read_pre_norm_bert, &kRobertaHeads, {});

const Family families::roberta_prelayernorm =
    bert_family(kPreNormRobertaTypes, kRobertaNames, "roberta_prelayernorm.", read_pre_norm_bert, &kRobertaHeads, {});

}  // namespace fovea
