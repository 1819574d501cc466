// T5's encoder (Raffel et al. 2020), and mT5's (Xue et al. 2021): relative positions alone, RMS norms, no bias anywhere,
// scores that are not scaled.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kModelTypes[] = {{"t5"}, {"mt5", R"({"feed_forward_proj": "gated-gelu"})"}};

constexpr TensorName kNames[] = {
    {Role::token_embedding, "shared.weight"},
    {Role::final_norm, "encoder.final_layer_norm.weight"},
    {Role::relative_bias, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {Role::attention_norm, "#layer.0.layer_norm.weight"},
    {Role::query, "#layer.0.SelfAttention.q.weight"},
    {Role::key, "#layer.0.SelfAttention.k.weight"},
    {Role::value, "#layer.0.SelfAttention.v.weight"},
    {Role::attention_output, "#layer.0.SelfAttention.o.weight"},
    {Role::feed_forward_norm, "#layer.1.layer_norm.weight"},
    {Role::up, "#layer.1.DenseReluDense.wi_1.weight", Within::alone, "#layer.1.DenseReluDense.wi_0.weight"},
    {Role::down, "#layer.1.DenseReluDense.wo.weight"},
};

/// "gated-gelu", "relu", …: gelu is the approximation by tanh where it is gated.
void read_feed_forward(const Fields& fields, Block& block, HfConfig& result) {
    const std::string spelled = fields.text_or("feed_forward_proj", "relu");
    block.gated = spelled.starts_with("gated-");
    const std::string name = block.gated ? spelled.substr(6) : spelled;
    if (name == "relu")
        block.activation = Activation::relu;
    else if (name == "silu")
        block.activation = Activation::silu;
    else if (name == "gelu_new" || (name == "gelu" && block.gated))
        block.activation = Activation::gelu_tanh;
    else if (name == "gelu")
        block.activation = Activation::gelu;
    else
        fields.refuse("feed_forward_proj", "relu, gelu, gelu_new or silu, maybe with gated- before it");
    for (std::uint32_t i = 0; !block.gated && i < result.stack().n_layers; ++i)
        result.names[{Role::up, i}] = "#layer.1.DenseReluDense.wi.weight";
}

void read(const Fields& fields, const std::string&, HfConfig& result) {
    constexpr std::uint32_t kMostWidth = 1u << 20, kMostLayers = 1u << 12, kUsualPositions = 512;
    Stack& stack = result.stack();
    stack.d_model = fields.count("d_model", 1, kMostWidth);
    stack.n_layers = fields.count("num_layers", 1, kMostLayers);
    stack.vocab_size = fields.count("vocab_size");
    // Any length can be computed; this is what it was trained for.
    stack.max_positions = fields.count_or("n_positions", kUsualPositions);
    stack.final_norm = Norm::rms;
    stack.final_norm_epsilon = static_cast<float>(fields.number_or("layer_norm_epsilon", 0.0, 1.0, 1e-6));
    Block block;
    block.n_heads = block.n_kv_heads = fields.count("num_heads", 1, kMostWidth);
    block.head_dim = block.value_head_dim = fields.count("d_kv", 1, kMostWidth);
    block.d_ff = fields.count("d_ff", 1, kMostWidth);
    block.norm = Norm::rms;
    block.norm_epsilon = stack.final_norm_epsilon;
    block.softmax_scale = 1.0f;
    read_feed_forward(fields, block, result);
    read_relative(fields, "relative_attention_num_buckets", fields.count_or("relative_attention_max_distance", 128),
                  block, result);
    set_layers(fields, std::vector<LayerShape>(stack.n_layers, {block, {}}), result);
    const auto classes = fields.has("architectures") ? fields.texts("architectures") : std::vector<std::string>{};
    if (classes.size() != 1 || !classes[0].ends_with("T5EncoderModel"))
        result.source.notes.push_back("config.json: of T5 the encoder alone is read");
}

bool ignores(std::string_view name) {
    return name.starts_with("decoder.") || name.starts_with("lm_head.") || name == "encoder.embed_tokens.weight";
}

}  // namespace

const Family families::t5 = {.types = kModelTypes,
                             .names = kNames,
                             .outer = "",
                             .layers = "encoder.block.",
                             .read = read,
                             .stack = StackIndex::encoder,
                             .ignores = ignores};

}  // namespace fovea
