// MPNet (Song et al. 2020): BERT's layers with learned positions and relative ones.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kMpnetTypes[] = {{"mpnet", R"({"max_position_embeddings": 512})"}};

constexpr auto kMpnetNames = kBertNames.with({
    {Role::relative_bias, "encoder.relative_attention_bias.weight"},
    {Role::attention_norm, "#attention.LayerNorm.weight"},
    {Role::query, "#attention.attn.q.weight"},
    {Role::key, "#attention.attn.k.weight"},
    {Role::value, "#attention.attn.v.weight"},
    {Role::attention_output, "#attention.attn.o.weight"},
});

void read_mpnet(const Fields& fields, const std::string&, HfConfig& result) {
    constexpr std::uint32_t kPadding = 1, kMaxDistance = 128, kBuckets = 32;  // fixed by the model's code
    if (fields.count_or("relative_attention_num_buckets", kBuckets) != kBuckets)
        fields.refuse("relative_attention_num_buckets", std::to_string(kBuckets));
    Block block = read_bert_stack(fields, kBertSizes, result);
    skip_padding_positions(fields, kPadding, result);
    read_relative(fields, "relative_attention_num_buckets", kMaxDistance, block, result);
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    set_layers(fields, LayerShape{block}, result);
}

}  // namespace

const Family families::mpnet = bert_family(kMpnetTypes, kMpnetNames, "mpnet.", read_mpnet, &kRobertaHeads);

}  // namespace fovea
