// Llama (Touvron et al. 2023), Mistral, Qwen and Seed-OSS: RMS norms, rotary halves, gates; and Arcee, without gates.
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
    {"arcee", R"({"max_position_embeddings": 4096, "hidden_act": "relu2", "rms_norm_eps": 1e-5})"},
    {"seed_oss",
     R"({"max_position_embeddings": 524288, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true})"}};

void read(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.query_key_norm = type == "qwen3" ? Norm::rms : Norm::none;
    block.activation = read_activation(fields, "hidden_act", "silu");
    block.gated = type != "arcee";
    const bool is_mistral = type == "mistral", is_qwen = type == "qwen2" || type == "qwen3";
    const bool bias = !is_mistral && type != "qwen2" && fields.flag_or("attention_bias", false);
    block.query_bias = block.key_bias = block.value_bias = bias || type == "qwen2";
    block.output_bias = type == "seed_oss" ? fields.flag_or("attention_out_bias", false) : bias;
    block.up_bias = block.down_bias = !is_mistral && !is_qwen && fields.flag_or("mlp_bias", false);
    block.gate_bias = block.gated && block.up_bias;

    std::vector<LayerShape> layers(stack.n_layers, with_rope(fields, block));
    const std::vector<bool> windowed = is_mistral ? read_windows_of_all(fields, stack.n_layers)
                                       : is_qwen  ? read_qwen_windows(fields, stack.n_layers)
                                                  : std::vector<bool>(stack.n_layers, false);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        if (windowed[i]) layers[i].block.window = fields.count("sliding_window");
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::llama = {
    .types = kModelTypes, .names = kLlamaNames, .outer = "model.", .layers = "layers.", .read = read};

}  // namespace fovea
