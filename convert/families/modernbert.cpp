// ModernBERT (Warner et al. 2024): norms before each part, gates, and rotary positions with one base for layers that
// see all and one for layers that see a window on both sides; and its decoders (Weller et al. 2025), with windows behind.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kModernbertTypes[] = {{"modernbert", R"({"max_position_embeddings": 8192})"}};

constexpr ModelType kDecoderTypes[] = {{"modernbert-decoder", R"({"max_position_embeddings": 8192})"}};

constexpr auto kModernbertNames = names_of({
    {Role::token_embedding, "embeddings.tok_embeddings.weight"},
    {Role::embedding_norm, "embeddings.norm.weight"},
    {Role::final_norm, "final_norm.weight"},
    {Role::attention_norm, "#attn_norm.weight"},
    {Role::query, "#attn.Wqkv.weight", Within::stacked},
    {Role::attention_output, "#attn.Wo.weight"},
    {Role::feed_forward_norm, "#mlp_norm.weight"},
    {Role::up, "#mlp.Wi.weight", Within::stacked},
    {Role::down, "#mlp.Wo.weight"},
});

constexpr auto kModernbertDecoderNames = kModernbertNames.with({
    {Role::query, "#attn.q_proj.weight"},
    {Role::key, "#attn.k_proj.weight"},
    {Role::value, "#attn.v_proj.weight"},
});

/// A kind of layer's rotary base, in the newer spelling or the older, which has no other settings.
double read_base(const Fields& fields, const char* kind, const char* older, double otherwise) {
    constexpr double kLeast = 1.01, kMost = 1e30;
    if (fields.has("rope_scaling")) fields.refuse("rope_scaling", "none");
    if (!fields.has("rope_parameters")) return fields.number_or(older, kLeast, kMost, otherwise);
    const Fields all = fields.object("rope_parameters");
    if (!all.has(kind)) return fields.number_or(older, kLeast, kMost, otherwise);
    const Fields of_kind = all.object(kind);
    if (of_kind.text_or("rope_type", "default") != "default") of_kind.refuse("rope_type", "default");
    return of_kind.number_or("rope_theta", kLeast, kMost, otherwise);
}

std::vector<bool> read_local_layers(const Fields& fields, std::uint32_t n_layers) {
    if (fields.has("layer_types")) return read_sliding_layers(fields, n_layers);
    const std::uint32_t every =
        fields.has("global_attn_every_n_layers") ? fields.count("global_attn_every_n_layers", 1) : 3;
    std::vector<bool> local(n_layers);
    for (std::uint32_t i = 0; i < n_layers; ++i) local[i] = i % every != 0;
    return local;
}

/// The first layer's attention has no norm of its own, since the embeddings' stands right before it: it becomes a layer
/// of only attention, and one of only the feed-forward part.
std::vector<LayerShape> split_first(const std::vector<LayerShape>& layers, HfConfig& result) {
    LayerShape attends = layers[0], feeds{layers[0].block, {}};
    attends.block.feed.d_ff = 0;
    attends.block.norm = Norm::none;
    attends.block.norm_bias = attends.block.feed.gated = false;
    attends.block.feed.up_bias = attends.block.feed.gate_bias = attends.block.feed.down_bias = false;
    feeds.block.attention.n_heads = feeds.block.attention.n_kv_heads = feeds.block.attention.head_dim =
        feeds.block.attention.value_head_dim = 0;
    feeds.block.attention.rotary_dim = feeds.block.attention.window = 0;
    feeds.block.attention.position = Position::none;
    set_biases(feeds.block.attention, false);
    std::vector<LayerShape> split = {attends, feeds};
    split.insert(split.end(), layers.begin() + 1, layers.end());
    for (std::size_t i = 0; i < split.size(); ++i)
        result.layer_prefixes.push_back("layers." + std::to_string(i ? i - 1 : 0) + ".");
    return split;
}

constexpr HeadLayer kWord[] = {{.name = "/lm_head.dense",
                                .activation = Activation::gelu,
                                .norm = "/lm_head.norm",
                                .activation_field = "classifier_activation",
                                .bias_field = "classifier_bias",
                                .norm_bias_field = "norm_bias"}};
constexpr HeadForms kWordHead = {
    .masked = kWord, .decoder = "/decoder", .decoder_bias = "/decoder.bias", .decoder_bias_field = "decoder_bias"};

void read_modernbert(const Fields& fields, const std::string& type, HfConfig& result) {
    const bool decodes = type == "modernbert-decoder";
    constexpr SizeNames kSizes = {.n_kv_heads = nullptr, .epsilon = "norm_eps", .default_epsilon = 1e-5};
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kSizes, Norm::layer, stack);
    const bool norm_bias = fields.flag_or("norm_bias", false), mlp_bias = fields.flag_or("mlp_bias", false);
    stack.embedding_norm = Norm::layer;
    stack.embedding_norm_bias = stack.final_norm_bias = block.norm_bias = norm_bias;
    block.attention.causal = decodes;
    block.feed.gated = true;
    block.feed.activation = read_activation(fields, "hidden_activation", "gelu");
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    block.feed.up_bias = block.feed.gate_bias = block.feed.down_bias = mlp_bias;
    block.attention.position = Position::rope;
    block.attention.rotary_dim = block.attention.head_dim;
    Rope global, local;
    global.base = read_base(fields, "full_attention", "global_rope_theta", 160000.0);
    local.base = read_base(fields, "sliding_attention", "local_rope_theta", 10000.0);
    const std::uint32_t half_window =
        fields.has("sliding_window") ? fields.count("sliding_window") : fields.count_or("local_attention", 128) / 2;
    const std::uint32_t window = half_window + (decodes ? 0 : 1);
    if (window == 0) fields.refuse("local_attention", "2 or more");
    const std::vector<bool> is_local = read_local_layers(fields, stack.n_layers);
    std::vector<LayerShape> layers(stack.n_layers, {block, global});
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        if (is_local[i]) layers[i].rope = local, layers[i].block.attention.window = window;
    stack.n_layers += 1;
    set_layers(fields, split_first(layers, result), result);
    if (decodes && !result.encodes) read_word_head(fields, kWordHead, result);
}

constexpr HeadLayer kPrediction = {.name = "/head.dense",
                                   .activation = Activation::gelu,
                                   .norm = "/head.norm",
                                   .activation_field = "classifier_activation",
                                   .bias_field = "classifier_bias",
                                   .norm_bias_field = "norm_bias"};
constexpr HeadLayer kModernbertClasses[] = {kPrediction, {"/classifier"}};
constexpr HeadLayer kModernbertMasked[] = {kPrediction};
constexpr HeadForms kModernbertHeads = {.classes = kModernbertClasses,
                                        .words = kModernbertClasses,
                                        .answers = kModernbertClasses,
                                        .masked = kModernbertMasked,
                                        .decoder = "/decoder",
                                        .decoder_bias = "/decoder.bias",
                                        .decoder_bias_field = "decoder_bias",
                                        .pooling_field = "classifier_pooling"};

}  // namespace

const Family families::modernbert_decoder = {
    .types = kDecoderTypes, .names = kModernbertDecoderNames, .read = read_modernbert};

const Family families::modernbert = {.types = kModernbertTypes,
                                     .names = kModernbertNames,
                                     .read = read_modernbert,
                                     .stack = StackIndex::encoder,
                                     .ignores = is_of_head,
                                     .heads = &kModernbertHeads};

}  // namespace fovea
