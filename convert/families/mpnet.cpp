// MPNet (Song et al. 2020): BERT's layers with learned positions and relative ones.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kModelTypes[] = {{"mpnet", R"({"max_position_embeddings": 512})"}};

constexpr TensorName kNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::position_embedding, "embeddings.position_embeddings.weight"},
    {Role::embedding_norm, "embeddings.LayerNorm.weight"},
    {Role::embedding_norm_bias, "embeddings.LayerNorm.bias"},
    {Role::relative_bias, "encoder.relative_attention_bias.weight"},
    {Role::attention_norm, "#attention.LayerNorm.weight"},
    {Role::attention_norm_bias, "#attention.LayerNorm.bias"},
    {Role::query, "#attention.attn.q.weight"},
    {Role::query_bias, "#attention.attn.q.bias"},
    {Role::key, "#attention.attn.k.weight"},
    {Role::key_bias, "#attention.attn.k.bias"},
    {Role::value, "#attention.attn.v.weight"},
    {Role::value_bias, "#attention.attn.v.bias"},
    {Role::attention_output, "#attention.attn.o.weight"},
    {Role::attention_output_bias, "#attention.attn.o.bias"},
    {Role::feed_forward_norm, "#output.LayerNorm.weight"},
    {Role::feed_forward_norm_bias, "#output.LayerNorm.bias"},
    {Role::up, "#intermediate.dense.weight"},
    {Role::up_bias, "#intermediate.dense.bias"},
    {Role::down, "#output.dense.weight"},
    {Role::down_bias, "#output.dense.bias"},
};

void read(const Fields& fields, const std::string&, HfConfig& result) {
    constexpr std::uint32_t kPadding = 1, kMaxDistance = 128, kBuckets = 32;  // fixed by the model's code
    if (fields.count_or("relative_attention_num_buckets", kBuckets) != kBuckets)
        fields.refuse("relative_attention_num_buckets", std::to_string(kBuckets));
    Block block = read_bert_stack(fields, kBertSizes, result);
    skip_padding_positions(fields, kPadding, result);
    read_relative(fields, "relative_attention_num_buckets", kMaxDistance, block, result);
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    set_layers(fields, std::vector<LayerShape>(result.stack().n_layers, {block, {}}), result);
}

constexpr HeadLayer kClasses[] = {{"/classifier.dense", Activation::tanh}, {"/classifier.out_proj"}};
constexpr HeadLayer kMasked[] = {{"/lm_head.dense", Activation::gelu, "/lm_head.layer_norm"}};
constexpr HeadForms kHeads = {.classes = kClasses,
                              .words = kLabels,
                              .answers = kAnswers,
                              .masked = kMasked,
                              .decoder = "/lm_head.decoder",
                              .decoder_bias = "/lm_head.bias"};

}  // namespace

const Family families::mpnet = {.types = kModelTypes,
                                .names = kNames,
                                .outer = "mpnet.",
                                .layers = "encoder.layer.",
                                .read = read,
                                .stack = StackIndex::encoder,
                                .older = kBertOlder,
                                .ignores = is_of_head,
                                .heads = &kHeads};

}  // namespace fovea
