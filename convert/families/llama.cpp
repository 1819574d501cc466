// Llama (Touvron et al. 2023), Mistral and Qwen: RMS norms, rotary halves, gates.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr const char* kModelTypes[] = {"llama", "mistral", "qwen2", "qwen3"};

/// Which layers see a window only: Qwen's two spellings, or Mistral's "all of them".
std::vector<bool> windowed_layers(const Fields& fields, const std::string& type, std::uint32_t n_layers) {
    if (type == "llama") return std::vector<bool>(n_layers, false);
    if (type == "mistral") {
        refuse_present(fields, "layer_types");
        return std::vector<bool>(n_layers, fields.has("sliding_window"));
    }
    const bool has_window = fields.flag_or("use_sliding_window", false) && fields.has("sliding_window");
    if (!fields.has("layer_types")) {
        const std::uint32_t first = has_window ? fields.count("max_window_layers", 0) : n_layers;
        std::vector<bool> windowed(n_layers);
        for (std::uint32_t i = 0; i < n_layers; ++i) windowed[i] = i >= first;
        return windowed;
    }
    std::vector<bool> windowed = read_sliding_layers(fields, n_layers);
    for (const bool is_windowed : windowed)
        if (is_windowed && !has_window) fields.refuse("sliding_window", "a window, as layer_types has sliding layers");
    return windowed;
}

void read(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.query_key_norm = type == "qwen3" ? Norm::rms : Norm::none;
    block.activation = read_activation(fields, "hidden_act", "silu");
    block.gated = true;
    const bool bias = (type == "llama" || type == "qwen3") && fields.flag_or("attention_bias", false);
    block.query_bias = block.key_bias = block.value_bias = bias || type == "qwen2";
    block.output_bias = bias;
    block.up_bias = block.gate_bias = block.down_bias = type == "llama" && fields.flag_or("mlp_bias", false);

    std::vector<LayerShape> layers(stack.n_layers, with_rope(fields, block));
    const std::vector<bool> windowed = windowed_layers(fields, type, stack.n_layers);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        if (windowed[i]) layers[i].block.window = fields.count("sliding_window");
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::llama = {
    .types = kModelTypes, .names = kLlamaNames, .outer = "model.", .layers = "layers.", .read = read};

}  // namespace fovea
