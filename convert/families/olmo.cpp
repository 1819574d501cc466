// OLMo (Groeneveld et al. 2024), whose norms have no weights; OLMo 2 (2025), which norms what each part adds, and queries and
// keys whole; OLMo 3 with windows. EXAONE 4 (LG AI Research 2025) norms like them, but each head.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kOlmo[] = {{"olmo", R"({"max_position_embeddings": 2048})"}};
constexpr ModelType kOlmo2[] = {
    {"olmo2", R"({"max_position_embeddings": 2048})"},
    {"olmo3", R"({"max_position_embeddings": 2048, "sliding_window": 4096, "rope_theta": 500000.0})"},
    {"exaone4", R"({"max_position_embeddings": 2048, "sliding_window": 4096, "num_key_value_heads": 32})"}};

constexpr TensorName kOlmoNames[] = {
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::query, "#self_attn.q_proj.weight"},
    {Role::key, "#self_attn.k_proj.weight"},
    {Role::value, "#self_attn.v_proj.weight"},
    {Role::attention_output, "#self_attn.o_proj.weight"},
    {Role::up, "#mlp.up_proj.weight", Within::alone, "#mlp.gate_proj.weight"},
    {Role::down, "#mlp.down_proj.weight"},
};

constexpr auto kOlmo2Names = kLlamaNames.with({
    {Role::attention_norm, "#post_attention_layernorm.weight"},
    {Role::feed_forward_norm, "#post_feedforward_layernorm.weight"},
});

void read_olmo(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack, Norm::layer);
    stack.final_norm_epsilon = block.norm_epsilon = 1e-5f;  // the library's, whatever config.json says
    stack.final_norm_bias = block.norm_bias = false;
    block.attention.projection_clip = static_cast<float>(fields.number_or("clip_qkv", 0.0, 1e9, 0.0));
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    set_layers(fields, with_rope(fields, block), result);
}

void read_olmo2(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    block.norm_place = NormPlace::output;
    block.attention.query_key_norm = Norm::rms;
    const bool is_exaone = type == "exaone4";
    block.attention.head_norm = is_exaone ? HeadNorm::shared : HeadNorm::together;
    if (!is_exaone) set_biases(block.attention, fields.flag_or("attention_bias", false));

    const bool has_window = type != "olmo2" && fields.has("sliding_window");
    std::vector<bool> windowed(stack.n_layers, false);
    if (type != "olmo2" && fields.has("layer_types")) {
        windowed = read_sliding_layers(fields, stack.n_layers);
    } else if (has_window) {
        const std::uint32_t period = is_exaone ? fields.count_or("sliding_window_pattern", 4) : 4;
        if (period == 0) fields.refuse("sliding_window_pattern", "a number above 0");
        windowed = all_but_every(period, stack.n_layers);
    }
    std::vector<LayerShape> layers;
    for (const bool is_windowed : windowed) {
        LayerShape layer = with_rope(fields, block, is_windowed ? "sliding_attention" : "full_attention");
        // EXAONE 4 has positions only in its windows, if it has windows.
        if (is_exaone && has_window && !is_windowed) layer = {block, {}, {}};
        if (is_windowed) layer.block.attention.window = fields.count("sliding_window");
        // Before settings by kind of layer, OLMo 3's scaling was that of full layers.
        if (is_windowed && !is_exaone && fields.has("rope_scaling") && !fields.has("rope_parameters")) {
            layer.rope = {.base = layer.rope.base};
            layer.block.attention.rope_scale = 1.0f;
        }
        layers.push_back(layer);
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::olmo = {.types = kOlmo, .names = kOlmoNames, .read = read_olmo};
const Family families::olmo2 = {.types = kOlmo2, .names = kOlmo2Names, .read = read_olmo2};

}  // namespace fovea
