// Llama (Touvron et al. 2023) and what differs from it by a few settings: Mistral, Qwen and the models of texts within
// Qwen's of pictures, Seed-OSS; and Arcee, without gates.
#include <algorithm>

#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kModelTypes[] = {
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
     R"({"max_position_embeddings": 524288, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true})"}};

/// Which layers see a window.
enum class Windows : std::uint8_t { none, of_all, of_qwen };

/// How a type's layers differ from Llama's.
struct Variant {
    std::string_view type;
    Windows windows = Windows::none;
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
};
static_assert(std::size(kVariants) == std::size(kModelTypes));

std::vector<bool> windowed_layers(const Fields& fields, Windows windows, std::uint32_t n_layers) {
    if (windows == Windows::of_all) return read_windows_of_all(fields, n_layers);
    if (windows == Windows::of_qwen) return read_qwen_windows(fields, n_layers);
    return std::vector<bool>(n_layers, false);
}

void read(const Fields& fields, const std::string& type, HfConfig& result) {
    const Variant& variant =
        *std::find_if(std::begin(kVariants), std::end(kVariants), [&](const Variant& v) { return v.type == type; });
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.query_key_norm = variant.head_norm;
    block.activation = read_activation(fields, "hidden_act", "silu");
    block.gated = variant.gated;
    const bool bias = variant.attention_bias && fields.flag_or("attention_bias", false);
    block.query_bias = block.key_bias = block.value_bias = bias || variant.own_biases;
    block.output_bias = type == "seed_oss" ? fields.flag_or("attention_out_bias", false) : bias;
    block.up_bias = block.down_bias = variant.mlp_bias && fields.flag_or("mlp_bias", false);
    block.gate_bias = block.gated && block.up_bias;

    std::vector<LayerShape> layers(stack.n_layers, with_rope(fields, block));
    const std::vector<bool> windowed = windowed_layers(fields, variant.windows, stack.n_layers);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        if (windowed[i]) layers[i].block.window = fields.count("sliding_window");
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::llama = {
    .types = kModelTypes, .names = kLlamaNames, .outer = "model.", .layers = "layers.", .read = read};

}  // namespace fovea
