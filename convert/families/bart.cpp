// BART (Lewis et al. 2019) and models built like it: an encoder reads one text, and a decoder writes another. They
// differ in the places of norms and in positions. mBART (Liu et al. 2020), PLBART (Ahmad et al. 2021) and Blenderbot
// (Roller et al. 2020) learn positions; Marian (Junczys-Dowmunt et al. 2018), Pegasus (Zhang et al. 2019) and M2M-100
// (Fan et al. 2020), which NLLB follows, compute them.
#include <cmath>

#include "convert/families/family.h"
#include "convert/families/reading.h"
#include "convert/families/torch_ends.h"

namespace fovea {
namespace {

constexpr ModelType kLearnedTypes[] = {
    {"bart", R"({"activation_function": "gelu", "max_position_embeddings": 1024, "scale_embedding": false})"},
    {"mbart", R"({"activation_function": "gelu", "max_position_embeddings": 1024, "scale_embedding": false})"},
    {"plbart", R"({"activation_function": "gelu", "max_position_embeddings": 1024, "scale_embedding": true})"},
    {"blenderbot", R"({"activation_function": "gelu", "max_position_embeddings": 128, "scale_embedding": false})"},
};
constexpr ModelType kComputedTypes[] = {
    {"marian", R"({"activation_function": "gelu", "max_position_embeddings": 1024, "scale_embedding": false})"},
    {"pegasus", R"({"activation_function": "gelu", "max_position_embeddings": 1024, "scale_embedding": false})"},
    {"m2m_100", R"({"activation_function": "relu", "max_position_embeddings": 1024, "scale_embedding": true})"},
};

/// The table of positions: the source's, or without its first two rows, which nothing reads; or computed.
enum class BartTable { learned, learned_after_two, by_halves, by_halves_after_two };

/// Facts of a model type that its config.json does not say.
struct BartKind {
    std::string_view type;
    NormPlace norms;
    bool embedding_norm, final_norm;
    BartTable positions;
};
constexpr BartKind kKinds[] = {
    {"bart", NormPlace::post, true, false, BartTable::learned_after_two},
    {"mbart", NormPlace::pre, true, true, BartTable::learned_after_two},
    {"plbart", NormPlace::post, true, false, BartTable::learned_after_two},
    {"blenderbot", NormPlace::pre, false, true, BartTable::learned},
    {"marian", NormPlace::post, false, false, BartTable::by_halves},
    {"pegasus", NormPlace::pre, false, true, BartTable::by_halves},
    {"m2m_100", NormPlace::pre, false, true, BartTable::by_halves_after_two},
};

const BartKind& find_kind(const std::string& type) {
    for (const BartKind& kind : kKinds)
        if (kind.type == type) return kind;
    return kKinds[0];
}

constexpr auto kLayerNames = names_of({
    {Role::attention_norm, "#self_attn_layer_norm.weight"},
    {Role::query, "#self_attn.q_proj.weight"},
    {Role::key, "#self_attn.k_proj.weight"},
    {Role::value, "#self_attn.v_proj.weight"},
    {Role::attention_output, "#self_attn.out_proj.weight"},
    {Role::cross_norm, "#encoder_attn_layer_norm.weight"},
    {Role::cross_query, "#encoder_attn.q_proj.weight"},
    {Role::cross_key, "#encoder_attn.k_proj.weight"},
    {Role::cross_value, "#encoder_attn.v_proj.weight"},
    {Role::cross_output, "#encoder_attn.out_proj.weight"},
    {Role::feed_forward_norm, "#final_layer_norm.weight"},
    {Role::up, "#fc1.weight"},
    {Role::down, "#fc2.weight"},
});

constexpr auto kBartEncoderNames = kLayerNames.with({
    {Role::token_embedding, "encoder.embed_tokens.weight"},
    {Role::position_embedding, "encoder.embed_positions.weight"},
    {Role::embedding_norm, "encoder.layernorm_embedding.weight"},
    {Role::final_norm, "encoder.layer_norm.weight"},
});

constexpr auto kBartNames = kLayerNames.with({
    {Role::token_embedding, "decoder.embed_tokens.weight"},
    {Role::position_embedding, "decoder.embed_positions.weight"},
    {Role::embedding_norm, "decoder.layernorm_embedding.weight"},
    {Role::final_norm, "decoder.layer_norm.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::output_bias, "/final_logits_bias"},
});

/// Both stacks look up one table; a checkpoint may have a copy for each.
constexpr std::pair<std::string_view, std::string_view> kBartOlder[] = {
    {"encoder.embed_tokens.weight", "shared.weight"}, {"decoder.embed_tokens.weight", "shared.weight"}};

bool is_shared_table(std::string_view name) { return name.ends_with("shared.weight"); }
bool is_table(std::string_view name) { return is_shared_table(name) || name.ends_with("embed_positions.weight"); }

/// Marian's: sines of all frequencies, then their cosines.
std::vector<float> halved_sinusoids(std::uint32_t n_positions, std::uint32_t d_model) {
    const std::vector<float> turns = sinusoids(n_positions, d_model);
    const std::uint32_t n_sines = (d_model + 1) / 2;
    std::vector<float> table(turns.size());
    for (std::size_t at = 0; at < turns.size(); at += d_model)
        for (std::uint32_t i = 0; i < d_model; ++i) table[at + i / 2 + (i % 2 ? n_sines : 0)] = turns[at + i];
    return table;
}

/// Reads a stack's sizes, whose names in config.json begin with `side`.
void read_bart_side(const Fields& fields, const std::string& side, const BartKind& kind, Stack& stack) {
    const std::string layers = side + "_layers", heads = side + "_attention_heads", d_ff = side + "_ffn_dim";
    const SizeNames names = {.d_model = "d_model",
                             .n_layers = layers.c_str(),
                             .n_heads = heads.c_str(),
                             .n_kv_heads = nullptr,
                             .d_ff = d_ff.c_str(),
                             .epsilon = "layer_norm_eps",
                             .default_epsilon = 1e-5};
    Block block = read_sizes(fields, names, Norm::layer, stack);
    stack.embedding_scale = fields.flag_or("scale_embedding", false) ? std::sqrt(static_cast<float>(stack.d_model)) : 1;
    stack.position = Position::learned;
    stack.embedding_norm = kind.embedding_norm ? Norm::layer : Norm::none;
    stack.embedding_norm_bias = kind.embedding_norm;
    stack.final_norm = kind.final_norm ? Norm::layer : Norm::none;
    stack.final_norm_bias = kind.final_norm;
    block.norm_place = kind.norms;
    block.attention.causal = block.attention.cross_attention = side == "decoder";
    set_biases(block, true);
    block.feed.activation = read_activation(fields, "activation_function", "gelu");
    stack.n_blocks = 1;
    stack.blocks[0] = block;
}

/// The class around the two stacks must be the one that writes; without a word it is taken for that.
void check_class(const Fields& fields) {
    if (!fields.flag_or("is_encoder_decoder", true) || fields.flag_or("is_decoder", false))
        fields.refuse("is_encoder_decoder", "true and is_decoder false, for a model of two stacks");
    if (!fields.flag_or("share_encoder_decoder_embeddings", true))
        fields.refuse("share_encoder_decoder_embeddings", "true, one vocabulary of both texts");
    if (!fields.has("architectures")) return;
    for (const std::string& name : fields.texts("architectures"))
        if (!name.ends_with("ForConditionalGeneration") && !name.ends_with("MTModel") && !name.ends_with("Model"))
            fields.refuse("architectures", "a class that writes a text, such as BartForConditionalGeneration");
}

void read_bart(const Fields& fields, const std::string& type, HfConfig& result) {
    if (result.encodes) fields.refuse("architectures", "a class that writes a text, not one of vectors or labels");
    check_class(fields);
    const BartKind& kind = find_kind(type);
    Config& config = result.source.config;
    read_bart_side(fields, "encoder", kind, config.encoder);
    read_bart_side(fields, "decoder", kind, config.decoder);
    read_output_head(fields, true, config.decoder);
    const std::uint32_t n_positions = config.decoder.max_positions, d_model = config.decoder.d_model;
    if (std::uint64_t{n_positions} * d_model > std::uint64_t{1} << 28)
        fields.refuse("max_position_embeddings", "a table of at most 268,435,456 numbers");
    if (kind.positions == BartTable::learned_after_two) result.n_skipped_positions = 2;
    if (kind.positions == BartTable::by_halves) result.positions = halved_sinusoids(n_positions, d_model);
    if (kind.positions != BartTable::by_halves_after_two) return;
    if (d_model % 2 || d_model < 4) fields.refuse("d_model", "an even number of 4 or more");
    // Its positions begin behind the padding token's id.
    if (fields.has("pad_token_id") && fields.count("pad_token_id", 0) != 1) fields.refuse("pad_token_id", "1");
    result.positions = halved_sinusoids_after_two(n_positions, d_model);
}

void settle(const Lookup& tensors, HfConfig& result) {
    result.source.config.decoder.output_bias = tensors.has("/final_logits_bias");
}

constexpr Family bart_family(std::span<const ModelType> types, decltype(Family::ignores) ignores) {
    return {.types = types,
            .names = kBartNames,
            .layers = "decoder.layers.",
            .read = read_bart,
            .encoder_names = kBartEncoderNames,
            .encoder_layers = "encoder.layers.",
            .older = kBartOlder,
            .ignores = ignores,
            .settle = settle};
}

}  // namespace

const Family families::bart = bart_family(kLearnedTypes, is_shared_table);
const Family families::marian = bart_family(kComputedTypes, is_table);

}  // namespace fovea
