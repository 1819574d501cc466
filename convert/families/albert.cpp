// ALBERT (Lan et al. 2020): embeddings narrower than the layers, and layers that share their weights.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kAlbertTypes[] = {{"albert", R"({"max_position_embeddings": 512})"}};

constexpr auto kAlbertNames = kBertNames.with({
    {Role::embedding_map, "encoder.embedding_hidden_mapping_in.weight"},
    {Role::attention_norm, "#attention.LayerNorm.weight"},
    {Role::query, "#attention.query.weight"},
    {Role::key, "#attention.key.weight"},
    {Role::value, "#attention.value.weight"},
    {Role::attention_output, "#attention.dense.weight"},
    {Role::feed_forward_norm, "#full_layer_layer_norm.weight"},
    {Role::up, "#ffn.weight"},
    {Role::down, "#ffn_output.weight"},
});

/// Layers fall into groups, equal parts of them, and each layer of a group is the same few inner layers.
void read_groups(const Fields& fields, HfConfig& result) {
    constexpr std::uint32_t kMostLayers = 1u << 12;
    Stack& stack = result.stack();
    const std::uint32_t n_groups =
        fields.has("num_hidden_groups") ? fields.count("num_hidden_groups", 1, stack.n_layers) : 1;
    const std::uint32_t n_inner = fields.has("inner_group_num") ? fields.count("inner_group_num", 1, 64) : 1;
    const std::uint32_t n_outer = stack.n_layers;
    if (std::uint64_t{n_outer} * n_inner > kMostLayers)
        fields.refuse("inner_group_num", "at most " + std::to_string(kMostLayers) + " layers in all");
    stack.n_layers = n_outer * n_inner;
    auto& shared = result.source.shared_layers[static_cast<std::size_t>(result.stack_index())];
    for (std::uint32_t i = 0; i < n_outer; ++i) {
        const std::uint32_t group = static_cast<std::uint32_t>(std::uint64_t{i} * n_groups / n_outer);
        const auto first = static_cast<std::uint32_t>((std::uint64_t{group} * n_outer + n_groups - 1) / n_groups);
        for (std::uint32_t j = 0; j < n_inner; ++j) {
            result.layer_prefixes.push_back("encoder.albert_layer_groups." + std::to_string(group) + ".albert_layers." +
                                            std::to_string(j) + ".");
            shared.push_back(first * n_inner + j);
        }
    }
}

void read_albert(const Fields& fields, const std::string&, HfConfig& result) {
    Block block = read_bert_stack(fields, kBertSizes, result);
    Stack& stack = result.stack();
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    stack.embedding_width = fields.count_or("embedding_size", 128);
    stack.embedding_bias = true;
    block.feed.activation = read_activation(fields, "hidden_act", "gelu_new");
    read_groups(fields, result);
    set_layers(fields, LayerShape{block}, result);
}

constexpr HeadLayer kAlbertClasses[] = {{"pooler", Activation::tanh}, {"/classifier"}};
constexpr HeadLayer kAlbertMasked[] = {{.name = "/predictions.dense",
                                        .norm = "/predictions.LayerNorm",
                                        .activation_field = "hidden_act",
                                        .of_embedding = true}};
constexpr HeadForms kAlbertHeads = {.classes = kAlbertClasses,
                                    .masked = kAlbertMasked,
                                    .decoder = "/predictions.decoder",
                                    .decoder_bias = "/predictions.bias"};

}  // namespace

const Family families::albert = bert_family(kAlbertTypes, kAlbertNames, "albert.", read_albert, &kAlbertHeads);

}  // namespace fovea
