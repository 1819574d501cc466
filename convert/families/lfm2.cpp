// LFM2 (Liquid AI 2025): gated short convolutions, and attention in some layers; maybe with experts, which rows choose by sigmoids.
// LFM3 (Liquid AI 2026): the same without experts, with norms behind parts too, windows in some layers and a gate for each head.
#include "convert/families/llama_names.h"
#include "convert/families/recurrent.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kLfm2Types[] = {
    {"lfm2", R"({"max_position_embeddings": 128000, "num_key_value_heads": 8, "rope_theta": 1000000.0,
                 "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": true})"}};
constexpr ModelType kLfm2MoeTypes[] = {
    {"lfm2_moe",
     R"({"max_position_embeddings": 128000, "num_key_value_heads": 8, "rope_theta": 1000000.0, "num_dense_layers": 2,
         "num_experts_per_tok": 4, "num_experts": 32, "moe_intermediate_size": 1792, "norm_topk_prob": true})"}};

constexpr ModelType kLfm3Types[] = {
    {"lfm3",
     R"({"max_position_embeddings": 128000, "num_key_value_heads": 4, "head_dim": 128, "conv_L_cache": 7, "sliding_window": 256,
         "rope_parameters": {"full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0,
                                                "partial_rotary_factor": 0.5},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})"}};

constexpr auto kLfm2Names = kLlamaNames.with({
    {Role::final_norm, "embedding_norm.weight"},
    {Role::attention_norm, "#operator_norm.weight"},
    {Role::query_norm, "#self_attn.q_layernorm.weight"},
    {Role::key_norm, "#self_attn.k_layernorm.weight"},
    {Role::attention_output, "#self_attn.out_proj.weight"},
    {Role::feed_forward_norm, "#ffn_norm.weight"},
    {Role::up, "#feed_forward.w3.weight", Within::alone, "#feed_forward.w1.weight"},
    {Role::down, "#feed_forward.w2.weight"},
    {Role::recurrent_norm, "#operator_norm.weight"},
    {Role::recurrent_query, "#conv.in_proj.weight", Within::joined},
    {Role::recurrent_key, "#conv.in_proj.weight", Within::joined},
    {Role::recurrent_value, "#conv.in_proj.weight", Within::joined},
    {Role::recurrent_kernel, "#conv.conv.weight"},
    {Role::recurrent_output, "#conv.out_proj.weight"},
});

constexpr auto kLfm2MoeNames = kLfm2Names.with({
    {Role::router, "#feed_forward.gate.weight"},
    {Role::choice_bias, "#feed_forward.expert_bias"},
    {Role::expert_up, "#feed_forward.experts.*.w3.weight", Within::alone, "#feed_forward.experts.*.w1.weight"},
    {Role::expert_down, "#feed_forward.experts.*.w2.weight"},
});

constexpr auto kLfm3Names = kLfm2Names.with({
    {Role::query_norm, "#self_attn.q_norm.weight"},
    {Role::key_norm, "#self_attn.k_norm.weight"},
    {Role::attention_gate, "#self_attn.gate_proj.weight"},
    {Role::attention_output, "#self_attn.o_proj.weight"},
    {Role::attention_post_norm, "#post_operator_norm.weight"},
    {Role::recurrent_post_norm, "#post_operator_norm.weight"},
    {Role::feed_forward_post_norm, "#post_ffn_norm.weight"},
});

/// Without layer_types those of full_attn_idxs attend, and all do without that.
std::vector<bool> convolved_layers(const Fields& fields, std::uint32_t n_layers) {
    if (fields.has("layer_types")) return read_recurrent_layers(fields, "conv", n_layers);
    std::vector<bool> convolved(n_layers, fields.has("full_attn_idxs"));
    if (fields.has("full_attn_idxs")) unset_listed(fields, "full_attn_idxs", convolved);
    return convolved;
}

/// Two thirds of the given width, times a factor, in whole multiples.
std::uint32_t adjusted_width(const Fields& fields, std::uint32_t d_ff) {
    if (!fields.flag_or("block_auto_adjust_ff_dim", true)) return d_ff;
    const std::uint32_t two_thirds = 2 * d_ff / 3;
    if (!fields.has("block_ffn_dim_multiplier")) return two_thirds;
    const double factor = fields.number("block_ffn_dim_multiplier", 1e-3, 1e3);
    const std::uint32_t multiple = fields.count("block_multiple_of", 1, 1u << 16);
    const auto scaled = static_cast<std::uint32_t>(factor * two_thirds);
    return (scaled + multiple - 1) / multiple * multiple;
}

/// Gives the stack its convolution, and returns the block of a layer that attends.
Block read_convolved(const Fields& fields, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.epsilon = "norm_eps", .default_epsilon = 1e-5}, Norm::rms, stack);
    read_output_head(fields, true, stack);
    block.attention.query_key_norm = Norm::rms;
    block.feed.activation = Activation::silu;
    block.feed.gated = true;
    const bool has_bias = fields.flag_or("conv_bias", false);
    stack.recurrent = {.n_heads = 1,
                       .n_key_heads = 1,
                       .key_dim = stack.d_model,
                       .value_dim = stack.d_model,
                       .kind = Recurrence::convolution,
                       .n_taps = static_cast<std::uint8_t>(number_or(fields, "conv_L_cache", 3, kMaxTaps)),
                       .input_bias = has_bias,
                       .kernel_bias = has_bias,
                       .output_bias = has_bias};
    if (stack.recurrent.n_taps < 2) fields.refuse("conv_L_cache", "at least 2");
    result.recurrent_rows = {{{Role::recurrent_key, Role::recurrent_query, Role::recurrent_value}}};
    return block;
}

void read_lfm2(const Fields& all, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Fields fields = all;
    if (all.has("block_ff_dim")) fields = fields.with("intermediate_size", all.json()["block_ff_dim"]);
    if (all.has("tie_embedding")) fields = fields.with("tie_word_embeddings", all.json()["tie_embedding"]);
    Block block = read_convolved(fields, result);
    const bool has_experts = type == "lfm2_moe";
    if (!has_experts) block.feed.d_ff = adjusted_width(fields, block.feed.d_ff);
    Block experts = block;
    if (has_experts) {
        read_routing(fields, {.n_experts = "num_experts", .n_shared = nullptr}, RouterScore::sigmoid, experts);
        experts.experts.choice_bias = fields.flag_or("use_expert_bias", true);
    }
    const std::uint32_t n_dense = has_experts ? number_or(fields, "num_dense_layers", 0, kMaxLayers) : stack.n_layers;
    const std::vector<bool> convolved = convolved_layers(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = i < n_dense ? block : experts;
        layers.push_back(convolved[i] ? LayerShape{recurrent_block(own), {}, {}} : with_rope(fields, own));
    }
    set_layers(fields, layers, result);
}

/// Without layer_types every fourth layer but the first has a window, and every fourth from the third on sees all.
std::vector<std::string> lfm3_layers(const Fields& fields, std::uint32_t n_layers) {
    std::vector<std::string> types;
    if (fields.has("layer_types")) types = fields.texts("layer_types");
    for (std::uint32_t i = 0; i < n_layers && !fields.has("layer_types"); ++i)
        types.emplace_back(i % 4 == 2 ? "full_attention" : i % 4 == 0 && i ? "sliding_attention" : "conv");
    if (types.size() != n_layers) fields.refuse("layer_types", std::to_string(n_layers) + " of them");
    return types;
}

void read_lfm3(const Fields& fields, const std::string&, HfConfig& result) {
    Block block = read_convolved(fields, result);
    if (fields.flag_or("use_sandwich_norm", true)) block.norm_place = NormPlace::both;
    Block attends = block;
    if (fields.flag_or("use_attention_gate", true)) attends.attention.output_gate = OutputGate::sigmoid_of_heads;
    set_biases(attends.attention, fields.flag_or("attention_bias", false));
    std::vector<LayerShape> layers;
    for (const std::string& type : lfm3_layers(fields, result.stack().n_layers)) {
        const bool sees_all = type == "full_attention";
        if (!sees_all && type != "sliding_attention" && type != "conv")
            fields.refuse("layer_types", "full_attention, sliding_attention or conv");
        layers.push_back(type == "conv" ? LayerShape{recurrent_block(block), {}, {}}
                                        : with_rope(fields, attends, type.c_str()));
        if (!sees_all && type != "conv") layers.back().block.attention.window = fields.count("sliding_window", 1);
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::lfm2 = {.types = kLfm2Types, .names = kLfm2Names, .read = read_lfm2};
const Family families::lfm3 = {.types = kLfm3Types, .names = kLfm3Names, .read = read_lfm3};
const Family families::lfm2_moe = {.types = kLfm2MoeTypes, .names = kLfm2MoeNames, .read = read_lfm2};

}  // namespace fovea
