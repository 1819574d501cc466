// T5 (Raffel et al. 2020) and mT5 (Xue et al. 2021): only relative positions, RMS norms, no biases, scores that are not
// scaled. The encoder by itself, or with the decoder that writes another text.
#include <cmath>

#include "convert/families/family.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostT5Layers = 1u << 12;
constexpr ModelType kT5Types[] = {{"t5"}, {"mt5", R"({"feed_forward_proj": "gated-gelu"})"}};

constexpr TensorName kT5EncoderNames[] = {
    {Role::token_embedding, "encoder.embed_tokens.weight"},
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

constexpr TensorName kDecoderNames[] = {
    {Role::token_embedding, "decoder.embed_tokens.weight"},
    {Role::final_norm, "decoder.final_layer_norm.weight"},
    {Role::output, "lm_head.weight"},
    {Role::relative_bias, "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {Role::attention_norm, "#layer.0.layer_norm.weight"},
    {Role::query, "#layer.0.SelfAttention.q.weight"},
    {Role::key, "#layer.0.SelfAttention.k.weight"},
    {Role::value, "#layer.0.SelfAttention.v.weight"},
    {Role::attention_output, "#layer.0.SelfAttention.o.weight"},
    {Role::cross_norm, "#layer.1.layer_norm.weight"},
    {Role::cross_query, "#layer.1.EncDecAttention.q.weight"},
    {Role::cross_key, "#layer.1.EncDecAttention.k.weight"},
    {Role::cross_value, "#layer.1.EncDecAttention.v.weight"},
    {Role::cross_output, "#layer.1.EncDecAttention.o.weight"},
    {Role::feed_forward_norm, "#layer.2.layer_norm.weight"},
    {Role::up, "#layer.2.DenseReluDense.wi_1.weight", Within::alone, "#layer.2.DenseReluDense.wi_0.weight"},
    {Role::down, "#layer.2.DenseReluDense.wo.weight"},
};

/// Both stacks look up one table; a part that is not gated has one matrix where others have two.
constexpr std::pair<std::string_view, std::string_view> kT5Older[] = {
    {"encoder.embed_tokens.weight", "shared.weight"},
    {"decoder.embed_tokens.weight", "shared.weight"},
    {"DenseReluDense.wi_1.weight", "DenseReluDense.wi.weight"},
};

/// "gated-gelu", "relu", …: gelu is the approximation by tanh if it is gated. What comes of that counts more, where it is said.
void read_feed_forward(const Fields& fields, Block& block) {
    const std::string spelled = fields.text_or("feed_forward_proj", "relu");
    const bool gated = spelled.starts_with("gated-");
    std::string name = spelled == "gated-gelu" ? "gelu_new" : gated ? spelled.substr(6) : spelled;
    if (fields.has("dense_act_fn")) name = fields.text("dense_act_fn");
    block.feed.gated = fields.flag_or("is_gated_act", gated);
    if (name == "relu")
        block.feed.activation = Activation::relu;
    else if (name == "silu")
        block.feed.activation = Activation::silu;
    else if (name == "gelu_new")
        block.feed.activation = Activation::gelu_tanh;
    else if (name == "gelu")
        block.feed.activation = Activation::gelu;
    else
        fields.refuse(fields.has("dense_act_fn") ? "dense_act_fn" : "feed_forward_proj",
                      "relu, gelu, gelu_new or silu, of feed_forward_proj maybe with gated- before it");
}

/// The stack of `n_layers` layers; the decoder's see what is before them and a memory.
void read_t5_side(const Fields& fields, std::uint32_t n_layers, bool decodes, HfConfig& result, Stack& stack) {
    constexpr std::uint32_t kMostWidth = 1u << 20, kUsualPositions = 512;
    stack.d_model = fields.count("d_model", 1, kMostWidth);
    stack.n_layers = n_layers;
    stack.vocab_size = fields.count("vocab_size");
    // Any length can be computed; T5 was trained for this one.
    stack.max_positions = fields.count_or("n_positions", kUsualPositions);
    stack.final_norm = Norm::rms;
    stack.final_norm_epsilon = static_cast<float>(fields.number_or("layer_norm_epsilon", 0.0, 1.0, 1e-6));
    Block block;
    block.attention.n_heads = block.attention.n_kv_heads = fields.count("num_heads", 1, kMostWidth);
    block.attention.head_dim = block.attention.value_head_dim = fields.count("d_kv", 1, kMostWidth);
    block.feed.d_ff = fields.count("d_ff", 1, kMostWidth);
    block.norm = Norm::rms;
    block.norm_epsilon = stack.final_norm_epsilon;
    block.attention.softmax_scale = 1.0f;
    block.attention.causal = block.attention.cross_attention = decodes;
    read_feed_forward(fields, block);
    read_relative(fields, "relative_attention_num_buckets", fields.count_or("relative_attention_max_distance", 128),
                  block, result);
    // Queries that see none of the keys after them have all buckets for those before.
    if (decodes && result.n_relative_buckets >= 2 * block.attention.relative_max_distance)
        fields.refuse("relative_attention_num_buckets",
                      "below twice the largest distance, " + std::to_string(block.attention.relative_max_distance));
    stack.n_blocks = 1;
    stack.blocks[0] = block;
}

void read_t5(const Fields& fields, const std::string&, HfConfig& result) {
    read_t5_side(fields, fields.count("num_layers", 1, kMostT5Layers), false, result, result.source.config.encoder);
    const auto classes = fields.has("architectures") ? fields.texts("architectures") : std::vector<std::string>{};
    if (classes.size() != 1 || !classes[0].ends_with("T5EncoderModel"))
        result.source.notes.push_back("config.json: of T5 the encoder alone is read");
}

/// The first T5 scales the rows that it multiplies with the output head, if that was its embedding table; later ones do
/// not, whatever the head is.
void read_pair(const Fields& fields, const std::string& type, HfConfig& result) {
    Config& config = result.source.config;
    const std::uint32_t n_layers = fields.count("num_layers", 1, kMostT5Layers);
    const std::uint32_t n_targets =
        fields.has("num_decoder_layers") ? fields.count("num_decoder_layers", 1, kMostT5Layers) : n_layers;
    read_t5_side(fields, n_layers, false, result, config.encoder);
    read_t5_side(fields, n_targets, true, result, config.decoder);
    config.decoder.has_output_head = config.decoder.tied_output = true;
    const bool divides = fields.flag_or("scale_decoder_outputs", fields.flag_or("tie_word_embeddings", true));
    if (type == "t5" && divides)
        config.decoder.logit_scale = 1.0f / std::sqrt(static_cast<float>(config.decoder.d_model));
}

const Family* with_decoder(const Fields& fields) {
    if (!fields.has("architectures")) return nullptr;
    for (const std::string& name : fields.texts("architectures"))
        if (name.ends_with("ForConditionalGeneration") || name.ends_with("WithLMHeadModel")) return &families::t5_pair;
    return nullptr;
}

bool ignores_table(std::string_view name) { return name == "shared.weight" || name.ends_with("embed_tokens.weight"); }
bool ignores_decoder(std::string_view name) {
    return ignores_table(name) || name.starts_with("decoder.") || name.starts_with("lm_head.");
}

}  // namespace

const Family families::t5 = {.types = kT5Types,
                             .names = kT5EncoderNames,
                             .outer = "",
                             .layers = "encoder.block.",
                             .read = read_t5,
                             .stack = StackIndex::encoder,
                             .older = kT5Older,
                             .ignores = ignores_decoder,
                             .variant = with_decoder};
/// Its types are t5's: t5's `variant` chooses it.
const Family families::t5_pair = {.types = {},
                                  .names = kDecoderNames,
                                  .outer = "",
                                  .layers = "decoder.block.",
                                  .read = read_pair,
                                  .encoder_names = kT5EncoderNames,
                                  .encoder_layers = "encoder.block.",
                                  .older = kT5Older,
                                  .ignores = ignores_table};

}  // namespace fovea
