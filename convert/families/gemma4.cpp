// Gemma 4's text model (Gemma Team 2026): windows and full layers with heads of their own width, values that are
// normed, last layers that read keys and values of earlier ones, and an input of each token to every layer; without that input
// in its unified models. Or experts beside the feed-forward part, which is the shared one then.
#include <algorithm>
#include <cmath>

#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGemma4[] = {
    {"gemma4_text",
     R"({"max_position_embeddings": 131072, "sliding_window": 512, "num_key_value_heads": 4, "head_dim": 256,
         "hidden_size_per_layer_input": 256,
         "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                             "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                                "rope_theta": 1000000.0}}})"},
    {"gemma4_unified_text",
     R"({"max_position_embeddings": 262144, "sliding_window": 1024, "num_key_value_heads": 4, "head_dim": 256,
         "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                             "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                                "rope_theta": 1000000.0}}})"}};

constexpr auto kGemma4Names = kLlamaNames.with({
    {Role::attention_post_norm, "#post_attention_layernorm.weight"},
    {Role::feed_forward_norm, "#pre_feedforward_layernorm.weight"},
    {Role::feed_forward_post_norm, "#post_feedforward_layernorm.weight"},
    {Role::layer_embedding, "embed_tokens_per_layer.weight"},
    {Role::layer_input_map, "per_layer_model_projection.weight"},
    {Role::layer_input_norm, "per_layer_projection_norm.weight"},
    {Role::layer_gate, "#per_layer_input_gate.weight"},
    {Role::layer_output, "#per_layer_projection.weight"},
    {Role::layer_output_norm, "#post_per_layer_input_norm.weight"},
    {Role::layer_scale, "#layer_scalar"},
    {Role::router_norm, "#router.scale"},
    {Role::router, "#router.proj.weight"},
    {Role::expert_scale, "#router.per_expert_scale"},
    {Role::expert_norm, "#pre_feedforward_layernorm_2.weight"},
    {Role::expert_up, "#experts.*.up_proj.weight", Within::alone, "#experts.*.gate_proj.weight"},
    {Role::expert_down, "#experts.*.down_proj.weight"},
    {Role::expert_post_norm, "#post_feedforward_layernorm_2.weight"},
    {Role::shared_up, "#mlp.up_proj.weight", Within::alone, "#mlp.gate_proj.weight"},
    {Role::shared_down, "#mlp.down_proj.weight"},
    {Role::shared_post_norm, "#post_feedforward_layernorm_1.weight"},
});

/// Full layers are the last of six if no field says which.
std::vector<bool> gemma4_windows(const Fields& fields, std::uint32_t n_layers) {
    constexpr std::uint32_t kPeriod = 6;
    std::vector<bool> windowed = sliding_layers_or(fields, all_but_every(kPeriod, n_layers));
    windowed.back() = false;
    return windowed;
}

/// Heads of one layer: per_layer_config's or, in older files, the same for all full layers.
void read_heads(const Fields& fields, std::uint32_t layer, bool has_window, Block& block) {
    const std::string number = std::to_string(layer);
    if (!fields.has("per_layer_config")) {
        if (has_window) return;
        block.attention.head_dim = fields.count_or("global_head_dim", 512);
        if (fields.flag_or("attention_k_eq_v", false))
            block.attention.n_kv_heads = fields.count_or("num_global_key_value_heads", block.attention.n_kv_heads);
    } else if (const Fields all = fields.object("per_layer_config"); all.has(number.c_str())) {
        const Fields own = all.object(number.c_str());
        for (const auto& [name, value] : own.json().items())
            if (name != "head_dim" && name != "num_key_value_heads") own.refuse(name.c_str(), "no such field");
        block.attention.head_dim = own.count_or("head_dim", block.attention.head_dim);
        block.attention.n_kv_heads = own.count_or("num_key_value_heads", block.attention.n_kv_heads);
    }
    block.attention.value_head_dim = block.attention.head_dim;
    if (block.attention.n_kv_heads == 0 || block.attention.n_heads % block.attention.n_kv_heads != 0)
        fields.refuse("num_global_key_value_heads",
                      "a divisor of num_attention_heads, " + std::to_string(block.attention.n_heads));
}

/// The feed-forward part becomes the one that all rows add to their experts.
void read_gemma4_experts(const Fields& fields, Block& block) {
    constexpr std::uint32_t kMost = kMaxExpertsUsed;
    block.experts.shared_d_ff = block.feed.d_ff;
    block.feed.d_ff = fields.count("moe_intermediate_size", 1, kMaxWidth);
    block.experts.n = static_cast<std::uint16_t>(fields.count("num_experts", 1, kMaxExperts));
    block.experts.n_used =
        static_cast<std::uint8_t>(fields.count("top_k_experts", 1, std::min<std::uint32_t>(kMost, block.experts.n)));
    block.experts.normalize = block.experts.own_norms = true;
}

void read_gemma4(const Fields& all_fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_unified = type == "gemma4_unified_text";  // whose class has no such fields
    const Fields fields =
        is_unified ? all_fields.with("hidden_size_per_layer_input", 0u).with("enable_moe_block", false) : all_fields;
    refuse_true(fields, "attention_bias");
    // "vision" concerns only pictures' tokens, which a text has none of.
    if (fields.has("use_bidirectional_attention") && fields.text("use_bidirectional_attention") != "vision")
        fields.refuse("use_bidirectional_attention", "null or vision");
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    read_output_head(fields, true, stack);
    stack.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(stack.d_model)));
    stack.logit_softcap = read_softcap(fields, "final_logit_softcapping", 0.0);
    block.feed.activation = read_activation(fields, "hidden_activation", "gelu_pytorch_tanh");
    block.feed.gated = true;
    block.norm_place = NormPlace::both;
    block.attention.query_key_norm = Norm::rms;
    block.attention.softmax_scale = 1.0f;
    block.inputs.layer_scale = true;
    const std::uint32_t width =
        fields.has("hidden_size_per_layer_input") ? fields.count("hidden_size_per_layer_input", 0) : 0;
    if (width > kMaxInputWidth)
        fields.refuse("hidden_size_per_layer_input", "at most " + std::to_string(kMaxInputWidth));
    block.inputs.width = static_cast<std::uint16_t>(width);
    if (width && fields.count_or("vocab_size_per_layer_input", stack.vocab_size) != stack.vocab_size)
        fields.refuse("vocab_size_per_layer_input", "vocab_size, " + std::to_string(stack.vocab_size));

    const std::uint32_t n_shared = fields.has("num_kv_shared_layers") ? fields.count("num_kv_shared_layers", 0) : 0;
    if (n_shared >= stack.n_layers)
        fields.refuse("num_kv_shared_layers", "less than num_hidden_layers, " + std::to_string(stack.n_layers));
    const bool wide = fields.flag_or("use_double_wide_mlp", false);
    const bool values_are_keys = fields.flag_or("attention_k_eq_v", false);
    const std::vector<bool> windowed = gemma4_windows(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Block own = block;
        own.attention.shared_keys = i >= stack.n_layers - n_shared;
        own.attention.value_norm = !own.attention.shared_keys;
        if (own.attention.shared_keys && wide) own.feed.d_ff *= 2;
        if (fields.flag_or("enable_moe_block", false)) read_gemma4_experts(fields, own);
        read_heads(fields, i, windowed[i], own);
        if (windowed[i]) own.attention.window = fields.count("sliding_window");
        if (values_are_keys && !windowed[i]) result.names[{Role::value, i}] = "#self_attn.k_proj.weight";
        layers.push_back(with_rope(fields, own, windowed[i] ? "sliding_attention" : "full_attention"));
    }
    set_layers(fields, layers, result);
}

/// Files have keys and values of layers that read earlier ones'.
bool is_of_shared_keys(std::string_view name) {
    for (const char* ending : {".k_proj.weight", ".v_proj.weight", ".k_norm.weight", ".v_norm.weight"})
        if (name.ends_with(ending)) return true;
    return false;
}

}  // namespace

const Family families::gemma4 = {
    .types = kGemma4, .names = kGemma4Names, .read = read_gemma4, .ignores = is_of_shared_keys};

}  // namespace fovea
