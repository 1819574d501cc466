// OPT (Zhang et al. 2022): learned positions whose table starts with two that no position has. Its model of 350M has norms behind
// each part, and tables of tokens that are narrower than the model. BioGPT (Luo et al. 2022) scales its embeddings, as XGLM does
// (Lin et al. 2022), whose positions are computed.
#include <array>
#include <cmath>

#include "convert/families/family.h"
#include "convert/families/reading.h"
#include "convert/families/torch_ends.h"

namespace fovea {
namespace {

constexpr ModelType kOptTypes[] = {{"opt", R"({"max_position_embeddings": 2048})"}};
constexpr ModelType kBioGpt[] = {{"biogpt", R"({"max_position_embeddings": 1024})"}};
constexpr ModelType kXglm[] = {{"xglm", R"({"max_position_embeddings": 2048})"}};

constexpr auto kOptNames = names_of({
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::position_embedding, "embed_positions.weight"},
    {Role::final_norm, "final_layer_norm.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#self_attn_layer_norm.weight"},
    {Role::query, "#self_attn.q_proj.weight"},
    {Role::key, "#self_attn.k_proj.weight"},
    {Role::value, "#self_attn.v_proj.weight"},
    {Role::attention_output, "#self_attn.out_proj.weight"},
    {Role::feed_forward_norm, "#final_layer_norm.weight"},
    {Role::up, "#fc1.weight"},
    {Role::down, "#fc2.weight"},
});

constexpr auto kBioGptNames = kOptNames.with({
    {Role::final_norm, "layer_norm.weight"},
    {Role::output, "/output_projection.weight"},
});

constexpr auto kXglmNames = kOptNames.with({
    {Role::final_norm, "layer_norm.weight"},
});

constexpr SizeNames kOptSizes = {
    .n_kv_heads = nullptr, .d_ff = "ffn_dim", .epsilon = "layer_norm_eps", .default_epsilon = 1e-5};

/// Norms then have neither weights nor biases: a name of nothing stands for ones.
void leave_out_norm_weights(HfConfig& result, Block& block) {
    result.stack().final_norm_bias = block.norm_bias = false;
    result.names[{Role::final_norm, 0}] = "";
    for (std::uint32_t i = 0; i < result.stack().n_layers; ++i)
        result.names[{Role::attention_norm, i}] = result.names[{Role::feed_forward_norm, i}] = "";
}

/// Positions, as wide as the model, are added behind the map of the embeddings, which no stack says: the tables become as wide.
void widen_tables(std::uint32_t width, HfConfig& result) {
    Stack& stack = result.stack();
    result.table_width = width;
    result.table_maps = {{Role::token_embedding, "project_in.weight"}, {Role::output, "project_out.weight"}};
    result.output_from_embedding = stack.tied_output;
    stack.tied_output = false;
}

void read_opt(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kOptSizes, Norm::layer, stack);
    read_output_head(fields, true, stack);
    constexpr std::uint32_t kMostWidth = 1u << 20;
    const std::uint32_t table_width =
        fields.has("word_embed_proj_dim") ? fields.count("word_embed_proj_dim", 1, kMostWidth) : stack.d_model;
    if (table_width != stack.d_model) widen_tables(table_width, result);
    stack.position = Position::learned;
    result.n_skipped_positions = 2;
    block.feed.activation = read_activation(fields, "activation_function", "relu");
    const bool before = fields.flag_or("do_layer_norm_before", true);
    block.norm_place = before ? NormPlace::pre : NormPlace::post;
    if (!before || fields.flag_or("_remove_final_layer_norm", false)) {
        stack.final_norm = Norm::none;
        stack.final_norm_bias = false;
    }
    if (!fields.flag_or("layer_norm_elementwise_affine", true)) leave_out_norm_weights(result, block);
    const bool bias = fields.flag_or("enable_bias", true);
    set_biases(block, bias);
    set_layers(fields, LayerShape{block}, result);
}

/// What both have. Their norms have this epsilon whatever the field says.
void read_scaled(const Fields& fields, SizeNames names, const char* activation, HfConfig& result) {
    Stack& stack = result.stack();
    names.n_kv_heads = nullptr;
    names.epsilon = "layer_norm_eps";
    Block block = read_sizes(fields.with("layer_norm_eps", 1e-5), names, Norm::layer, stack);
    read_output_head(fields, true, stack);
    stack.position = Position::learned;
    if (fields.flag_or("scale_embedding", true))
        stack.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(stack.d_model)));
    block.feed.activation = read_activation(fields, activation, "gelu");
    set_biases(block, true);
    set_layers(fields, LayerShape{block}, result);
}

void read_biogpt(const Fields& fields, const std::string&, HfConfig& result) {
    read_scaled(fields, {}, "hidden_act", result);
    result.n_skipped_positions = 2;
}

void read_xglm(const Fields& fields, const std::string&, HfConfig& result) {
    refuse_true(fields, "add_cross_attention");
    read_scaled(fields,
                {.d_model = "d_model", .n_layers = "num_layers", .n_heads = "attention_heads", .d_ff = "ffn_dim"},
                "activation_function", result);
    const Stack& stack = result.stack();
    if (stack.d_model < 4) fields.refuse("d_model", "4 or more");
    if (std::uint64_t{stack.max_positions} * stack.d_model > std::uint64_t{1} << 28)
        fields.refuse("max_position_embeddings", "a table of at most 268,435,456 numbers");
    // A padding token's position is zero, and is none of a text's if its id is below two.
    if (fields.has("pad_token_id")) static_cast<void>(fields.count("pad_token_id", 0, 1));
    result.positions = halved_sinusoids_after_two(stack.max_positions, stack.d_model);
}

}  // namespace

const Family families::opt = {.types = kOptTypes, .names = kOptNames, .outer = "model.decoder.", .read = read_opt};

const Family families::xglm = {.types = kXglm, .names = kXglmNames, .read = read_xglm};

const Family families::biogpt = {.types = kBioGpt, .names = kBioGptNames, .outer = "biogpt.", .read = read_biogpt};

}  // namespace fovea
