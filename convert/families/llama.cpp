// Llama (Touvron et al. 2023) and models that differ from it by a few settings: Mistral and Ministral, Qwen and the
// models of texts within Qwen's of pictures, Seed-OSS, CWM, InternLM 3, IQuest-Coder; and, without gates, Arcee and
// Jais 2.
#include <algorithm>

#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kLlamaTypes[] = {
    {"llama", R"({"max_position_embeddings": 2048})"},
    {"mistral", R"({"max_position_embeddings": 131072, "sliding_window": 4096, "num_key_value_heads": 8})"},
    {"qwen2", R"({"max_position_embeddings": 32768, "max_window_layers": 28, "num_key_value_heads": 32})"},
    {"qwen3",
     R"({"max_position_embeddings": 32768, "max_window_layers": 28, "num_key_value_heads": 32, "head_dim": 128})"},
    {"qwen2_vl_text", R"({"max_position_embeddings": 32768, "max_window_layers": 80, "num_key_value_heads": 8,
                          "rope_theta": 1000000.0, "rms_norm_eps": 1e-5})"},
    {"qwen2_5_vl_text", R"({"max_position_embeddings": 32768, "max_window_layers": 80, "num_key_value_heads": 8,
                            "rope_theta": 1000000.0, "rms_norm_eps": 1e-5})"},
    {"qwen3_vl_text", R"({"max_position_embeddings": 128000, "num_key_value_heads": 32, "head_dim": 128,
                          "rope_theta": 500000.0})"},
    {"arcee", R"({"max_position_embeddings": 4096, "hidden_act": "relu2", "rms_norm_eps": 1e-5})"},
    {"seed_oss",
     R"({"max_position_embeddings": 524288, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true})"},
    {"ministral", R"({"max_position_embeddings": 131072, "sliding_window": 4096, "num_key_value_heads": 8})"},
    {"ministral3",
     R"({"max_position_embeddings": 262144, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5,
                       "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
                                           "original_max_position_embeddings": 16384, "mscale": 1.0,
                                           "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}})"},
    {"cwm", R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5,
                "sliding_window": 8192, "rope_theta": 1000000.0,
                "rope_parameters": {"rope_type": "llama3", "rope_theta": 1000000.0, "factor": 16.0,
                                    "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                    "original_max_position_embeddings": 8192}})"},
    {"internlm3",
     R"({"max_position_embeddings": 32768, "num_key_value_heads": 2, "head_dim": 128, "rms_norm_eps": 1e-5})"},
    {"iquestcoder",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5})"},
    {"jais2", R"({"max_position_embeddings": 8192, "hidden_act": "relu2", "attention_bias": true, "mlp_bias": true})"}};

/// Layers that see a window: `as_listed`: those that layer_types lists; else all, or all but every fourth, from the
/// first on.
enum class Windows : std::uint8_t { none, of_all, of_qwen, as_listed_or_all, as_listed_or_most };

/// How a type's layers differ from Llama's.
struct Variant {
    std::string_view type;
    Windows windows = Windows::none;
    Norm norm = Norm::rms;
    Norm head_norm = Norm::none;
    bool gated = true;
    bool own_biases = false;      ///< queries, keys and values have one, whatever attention_bias says
    bool attention_bias = false;  ///< that field says which biases attention has
    bool mlp_bias = false;        ///< that field is read
};

constexpr Variant kVariants[] = {
    {.type = "llama", .attention_bias = true, .mlp_bias = true},
    {.type = "mistral", .windows = Windows::of_all},
    {.type = "qwen2", .windows = Windows::of_qwen, .own_biases = true},
    {.type = "qwen3", .windows = Windows::of_qwen, .head_norm = Norm::rms, .attention_bias = true},
    {.type = "qwen2_vl_text", .windows = Windows::of_qwen, .own_biases = true},
    {.type = "qwen2_5_vl_text", .windows = Windows::of_qwen, .own_biases = true},
    {.type = "qwen3_vl_text", .head_norm = Norm::rms, .attention_bias = true},
    {.type = "arcee", .gated = false, .attention_bias = true, .mlp_bias = true},
    {.type = "seed_oss", .attention_bias = true, .mlp_bias = true},
    {.type = "ministral", .windows = Windows::as_listed_or_all},
    {.type = "ministral3", .windows = Windows::of_all},
    {.type = "cwm", .windows = Windows::as_listed_or_most, .mlp_bias = true},
    {.type = "internlm3", .attention_bias = true, .mlp_bias = true},
    {.type = "iquestcoder", .attention_bias = true, .mlp_bias = true},
    {.type = "jais2", .norm = Norm::layer, .gated = false, .attention_bias = true, .mlp_bias = true},
};
static_assert(std::size(kVariants) == std::size(kLlamaTypes));

std::vector<bool> windowed_layers(const Fields& fields, Windows windows, std::uint32_t n_layers) {
    if (windows == Windows::of_all) return read_windows_of_all(fields, n_layers);
    if (windows == Windows::of_qwen) return read_qwen_windows(fields, n_layers);
    if (windows == Windows::none) return std::vector<bool>(n_layers, false);
    if (fields.has("layer_types")) return read_sliding_layers(fields, n_layers);
    if (!fields.has("sliding_window")) return std::vector<bool>(n_layers, false);
    std::vector<bool> windowed(n_layers, true);
    for (std::uint32_t i = 0; windows == Windows::as_listed_or_most && i < n_layers; i += 4) windowed[i] = false;
    return windowed;
}

/// InternLM 3's own names for the biases; its class has either all of them or none.
Fields with_internlm_biases(const Fields& fields) {
    const bool attention = fields.flag_or("qkv_bias", fields.flag_or("attention_bias", false)),
               others = fields.flag_or("bias", fields.flag_or("mlp_bias", false));
    if (attention != others) fields.refuse("qkv_bias", "the same as bias");
    return fields.with("attention_bias", attention).with("mlp_bias", others);
}

/// Ministral 3 multiplies queries by a number that grows from the original length on (as Llama 4 does): positions end there.
void end_where_queries_grow(const Fields& fields, LayerShape& layer) {
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
        if (!fields.has(name)) continue;
        if (fields.object(name).number_or("llama_4_scaling_beta", -1e6, 1e6, 0.0) != 0.0)
            layer.rope.fixed_length = static_cast<std::uint32_t>(layer.rope.original_positions);
        return;
    }
}

void read_llama(const Fields& all_fields, const std::string& type, HfConfig& result) {
    const Fields fields = type == "internlm3" ? with_internlm_biases(all_fields) : all_fields;
    const Variant& variant =
        *std::find_if(std::begin(kVariants), std::end(kVariants), [&](const Variant& v) { return v.type == type; });
    Stack& stack = result.stack();
    const SizeNames of_layer_norm = {.epsilon = "layer_norm_eps", .default_epsilon = 1e-5};
    const bool has_layer_norm = variant.norm == Norm::layer;
    Block block = read_sizes(fields, has_layer_norm ? of_layer_norm : SizeNames{}, variant.norm, stack);
    read_output_head(fields, false, stack);
    if (type == "iquestcoder") {
        refuse_present(fields, "clip_qkv");
        refuse_true(fields, "use_sliding_window");
    }
    block.attention.query_key_norm = variant.head_norm;
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.feed.gated = variant.gated;
    const bool bias = variant.attention_bias && fields.flag_or("attention_bias", false);
    block.attention.query_bias = block.attention.key_bias = block.attention.value_bias = bias || variant.own_biases;
    block.attention.output_bias = type == "seed_oss" ? fields.flag_or("attention_out_bias", false) : bias;
    block.feed.up_bias = block.feed.down_bias = variant.mlp_bias && fields.flag_or("mlp_bias", false);
    block.feed.gate_bias = block.feed.gated && block.feed.up_bias;

    LayerShape layer = with_rope(fields, block);
    if (type == "ministral3") end_where_queries_grow(fields, layer);
    std::vector<LayerShape> layers(stack.n_layers, layer);
    set_windows(fields, windowed_layers(fields, variant.windows, stack.n_layers), layers);
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::llama = {.types = kLlamaTypes, .names = kLlamaNames, .read = read_llama};

}  // namespace fovea
