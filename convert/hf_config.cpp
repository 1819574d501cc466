#include "convert/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

#include "convert/refusal.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostWidth = 1u << 20, kMostLayers = 1u << 12;  // check() says more; these keep sums small

Activation read_activation(const Fields& fields, const char* name, const char* otherwise) {
    const std::string spelled = fields.text_or(name, otherwise);
    if (spelled == "silu" || spelled == "swish") return Activation::silu;
    if (spelled == "relu") return Activation::relu;
    if (spelled == "gelu" || spelled == "gelu_python") return Activation::gelu;
    if (spelled == "gelu_new" || spelled == "gelu_pytorch_tanh" || spelled == "gelu_fast") return Activation::gelu_tanh;
    fields.refuse(name, "silu, relu, gelu, gelu_new, gelu_fast or gelu_pytorch_tanh");
}

void refuse_present(const Fields& fields, const char* name) {
    if (fields.has(name)) fields.refuse(name, "none");
}

void refuse_true(const Fields& fields, const char* name) {
    if (fields.flag_or(name, false)) fields.refuse(name, "false");
}

/// Which layers see a window only: Qwen's two spellings, or Mistral's "all of them".
std::vector<bool> windowed_layers(const Fields& fields, const std::string& type, std::uint32_t n_layers) {
    const bool qwen = type == "qwen2" || type == "qwen3";
    if (type == "llama") return std::vector<bool>(n_layers, false);
    if (!qwen) {
        refuse_present(fields, "layer_types");
        return std::vector<bool>(n_layers, fields.has("sliding_window"));
    }
    const bool has_window = fields.flag_or("use_sliding_window", false) && fields.has("sliding_window");
    std::vector<bool> windowed(n_layers);
    if (!fields.has("layer_types")) {
        const std::uint32_t first = has_window ? fields.count("max_window_layers", 0) : n_layers;
        for (std::uint32_t i = 0; i < n_layers; ++i) windowed[i] = i >= first;
        return windowed;
    }
    const std::vector<std::string> types = fields.texts("layer_types");
    if (types.size() != n_layers) fields.refuse("layer_types", std::to_string(n_layers) + " of them");
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        if (types[i] != "full_attention" && types[i] != "sliding_attention")
            fields.refuse("layer_types", "full_attention or sliding_attention");
        windowed[i] = types[i] == "sliding_attention";
        if (windowed[i] && !has_window) fields.refuse("sliding_window", "a window, as layer_types has sliding layers");
    }
    return windowed;
}

/// Layers of equal shape share a Block.
void set_layers(const Fields& fields, const std::vector<Block>& layers, HfConfig& result) {
    Stack& stack = result.stack();
    std::vector<std::uint8_t>& numbers = result.source.layer_blocks[result.kind == HfKind::bert ? 0 : 1];
    for (const Block& layer : layers) {
        const auto begin = stack.blocks.begin();
        const auto at = static_cast<std::uint32_t>(std::find(begin, begin + stack.n_blocks, layer) - begin);
        if (at == stack.blocks.size())
            fields.refuse("layers", "at most " + std::to_string(kMaxBlocks) + " different kinds of layers");
        stack.blocks[at] = layer;
        stack.n_blocks = std::max(stack.n_blocks, at + 1);
        numbers.push_back(static_cast<std::uint8_t>(at));
    }
    if (stack.n_blocks == 1) numbers.clear();
    stack.layer_blocks = numbers;
}

void read_llama_kind(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    stack.d_model = fields.count("hidden_size", 1, kMostWidth);
    stack.n_layers = fields.count("num_hidden_layers", 1, kMostLayers);
    stack.vocab_size = fields.count("vocab_size");
    stack.max_positions = fields.count("max_position_embeddings");
    stack.final_norm = Norm::rms;
    stack.final_norm_epsilon = static_cast<float>(fields.number_or("rms_norm_eps", 0.0, 1.0, 1e-6));
    stack.has_output_head = true;
    stack.tied_output = fields.flag_or("tie_word_embeddings", false);

    Block block;
    block.n_heads = fields.count("num_attention_heads", 1, kMostWidth);
    block.n_kv_heads = fields.count_or("num_key_value_heads", block.n_heads);
    if (block.n_kv_heads == 0 || block.n_heads % block.n_kv_heads != 0)
        fields.refuse("num_key_value_heads", "a divisor of num_attention_heads, " + std::to_string(block.n_heads));
    if (!fields.has("head_dim") && stack.d_model % block.n_heads != 0)
        fields.refuse("hidden_size", "a multiple of num_attention_heads, " + std::to_string(block.n_heads));
    block.head_dim = fields.has("head_dim") ? fields.count("head_dim", 1, kMostWidth) : stack.d_model / block.n_heads;
    block.value_head_dim = block.head_dim;
    block.d_ff = fields.count("intermediate_size");
    block.norm = Norm::rms;
    block.norm_epsilon = stack.final_norm_epsilon;
    block.query_key_norm = type == "qwen3" ? Norm::rms : Norm::none;
    block.position = Position::rope;
    block.rotary_dim = read_hf_rotary_dim(fields, block.head_dim);
    block.activation = read_activation(fields, "hidden_act", "silu");
    block.gated = block.causal = true;
    const bool bias = (type == "llama" || type == "qwen3") && fields.flag_or("attention_bias", false);
    block.query_bias = block.key_bias = block.value_bias = bias || type == "qwen2";
    block.output_bias = bias;
    block.up_bias = block.gate_bias = block.down_bias = type == "llama" && fields.flag_or("mlp_bias", false);
    result.rope = read_hf_rope(fields);
    block.rope_scale = result.rope.attention_factor;

    std::vector<Block> layers(stack.n_layers, block);
    const std::vector<bool> windowed = windowed_layers(fields, type, stack.n_layers);
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        if (windowed[i]) layers[i].window = fields.count("sliding_window");
    set_layers(fields, layers, result);
}

void read_gpt2(const Fields& fields, HfConfig& result) {
    refuse_true(fields, "add_cross_attention");
    Stack& stack = result.stack();
    stack.d_model = fields.count("n_embd", 1, kMostWidth);
    stack.n_layers = fields.count("n_layer", 1, kMostLayers);
    stack.vocab_size = fields.count("vocab_size");
    stack.max_positions = fields.count("n_positions");
    stack.position = Position::learned;
    stack.final_norm = Norm::layer;
    stack.final_norm_bias = true;
    stack.final_norm_epsilon = static_cast<float>(fields.number_or("layer_norm_epsilon", 0.0, 1.0, 1e-5));
    stack.has_output_head = true;
    stack.tied_output = fields.flag_or("tie_word_embeddings", true);

    Block block;
    block.n_heads = block.n_kv_heads = fields.count("n_head", 1, kMostWidth);
    if (stack.d_model % block.n_heads != 0)
        fields.refuse("n_embd", "a multiple of n_head, " + std::to_string(block.n_heads));
    block.head_dim = block.value_head_dim = stack.d_model / block.n_heads;
    block.d_ff = fields.count_or("n_inner", 4 * stack.d_model);
    block.norm = Norm::layer;
    block.norm_epsilon = stack.final_norm_epsilon;
    block.activation = read_activation(fields, "activation_function", "gelu_new");
    block.causal = true;
    block.norm_bias = true;
    block.query_bias = block.key_bias = block.value_bias = block.output_bias = block.up_bias = block.down_bias = true;
    if (!fields.flag_or("scale_attn_weights", true)) block.softmax_scale = 1.0f;

    std::vector<Block> layers(stack.n_layers, block);
    if (fields.flag_or("scale_attn_by_inverse_layer_idx", false)) {
        const double scale = block.softmax_scale != 0.0f ? 1.0 : 1.0 / std::sqrt(static_cast<double>(block.head_dim));
        for (std::uint32_t i = 0; i < stack.n_layers; ++i)
            layers[i].softmax_scale = static_cast<float>(scale / (i + 1.0));
    }
    set_layers(fields, layers, result);
}

void read_bert(const Fields& fields, HfConfig& result) {
    refuse_true(fields, "is_decoder");
    refuse_true(fields, "add_cross_attention");
    if (fields.text_or("position_embedding_type", "absolute") != "absolute")
        fields.refuse("position_embedding_type", "absolute");
    Stack& stack = result.stack();
    stack.d_model = fields.count("hidden_size", 1, kMostWidth);
    stack.n_layers = fields.count("num_hidden_layers", 1, kMostLayers);
    stack.vocab_size = fields.count("vocab_size");
    stack.max_positions = fields.count("max_position_embeddings");
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    stack.position = Position::learned;
    stack.embedding_norm = Norm::layer;
    stack.embedding_norm_bias = true;
    // There is no final norm; its epsilon is that of the embeddings' norm.
    stack.final_norm_epsilon = static_cast<float>(fields.number_or("layer_norm_eps", 0.0, 1.0, 1e-12));

    Block block;
    block.n_heads = block.n_kv_heads = fields.count("num_attention_heads", 1, kMostWidth);
    if (stack.d_model % block.n_heads != 0)
        fields.refuse("hidden_size", "a multiple of num_attention_heads, " + std::to_string(block.n_heads));
    block.head_dim = block.value_head_dim = stack.d_model / block.n_heads;
    block.d_ff = fields.count("intermediate_size");
    block.norm = Norm::layer;
    block.norm_place = NormPlace::post;
    block.norm_bias = true;
    block.norm_epsilon = stack.final_norm_epsilon;
    block.activation = read_activation(fields, "hidden_act", "gelu");
    block.query_bias = block.key_bias = block.value_bias = block.output_bias = block.up_bias = block.down_bias = true;
    set_layers(fields, std::vector<Block>(stack.n_layers, block), result);
}

/// One id or a list of them, added to `ids` if in the vocabulary and new.
void add_ids(const Fields& fields, const char* name, std::uint32_t vocab_size, std::vector<Token>& ids) {
    if (!fields.has(name)) return;
    const nlohmann::json& field = fields.json()[name];
    std::set<Token> known(ids.begin(), ids.end());
    for (const nlohmann::json& id : field.is_array() ? field : nlohmann::json::array({field})) {
        if (!id.is_number_integer()) fields.refuse(name, "a token's id or a list of them");
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab_size) continue;
        const auto token = id.get<Token>();
        if (known.insert(token).second) ids.push_back(token);
    }
}

/// The part of "_name_or_path" after the last slash: the same wherever the folder lies now.
std::string model_name(const Fields& fields, const std::string& type) {
    std::string name = fields.text_or("_name_or_path", "");
    while (!name.empty() && name.back() == '/') name.pop_back();
    name = name.substr(name.find_last_of('/') + 1);
    return name.empty() ? type : name;
}

}  // namespace

HfConfig read_hf_config(const std::filesystem::path& config, const std::filesystem::path& generation) {
    const Fields fields = Fields::read(config);
    static constexpr std::array<const char*, 6> kTypes = {"llama", "mistral", "qwen2", "qwen3", "gpt2", "bert"};
    const std::string type = fields.text("model_type");
    if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end())
        fields.refuse("model_type", "llama, mistral, qwen2, qwen3, gpt2 or bert");
    refuse_present(fields, "quantization_config");

    HfConfig result;
    result.kind = type == "gpt2" ? HfKind::gpt2 : type == "bert" ? HfKind::bert : HfKind::llama;
    switch (result.kind) {
        case HfKind::llama: read_llama_kind(fields, type, result); break;
        case HfKind::gpt2: read_gpt2(fields, result); break;
        case HfKind::bert: read_bert(fields, result); break;
    }
    require(check(result.source.config), config.string());
    const std::uint32_t vocab_size = result.stack().vocab_size;
    std::vector<Token> bos;
    add_ids(fields, "bos_token_id", vocab_size, bos);
    add_ids(fields, "eos_token_id", vocab_size, result.eos);
    std::error_code error;
    if (std::filesystem::exists(generation, error)) {
        const Fields more = Fields::read(generation);
        add_ids(more, "bos_token_id", vocab_size, bos);
        add_ids(more, "eos_token_id", vocab_size, result.eos);
    }
    if (!bos.empty()) result.bos = bos.front();
    result.source.info = {{"name", model_name(fields, type)}, {"architecture", type}};
    if (const std::string suffix = fields.text_or("prompt_suffix", ""); !suffix.empty())
        result.source.info.emplace_back("prompt_suffix", suffix);
    return result;
}

}  // namespace fovea
