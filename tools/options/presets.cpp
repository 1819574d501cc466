#include "tools/options/presets.h"

#include <array>

#include "host/base/words.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
namespace {

enum class PresetFamily { gpt2, llama };

/// One row per model, as its own config.json or paper gives it.
struct Preset {
    const char* name;
    PresetFamily family;
    std::uint32_t n_layers, d_model, n_heads, n_kv_heads, head_dim, d_ff, vocab_size, max_positions;
    bool tied_output = true;
    bool query_key_value_bias = false;
    bool query_key_norm = false;
    std::uint32_t window = 0;
    float epsilon = 1e-5f;
    std::uint16_t n_experts = 0;
    std::uint8_t n_experts_used = 0;
    bool normalize_experts = false, norms_heads_together = false, norms_within = false;
};

// GPT-3 is Brown et al. 2020, table 2.1, its banded layers taken as full ones.
constexpr Preset kPresets[] = {
    {"gpt2", PresetFamily::gpt2, 12, 768, 12, 12, 64, 3072, 50257, 1024},
    {"gpt2-medium", PresetFamily::gpt2, 24, 1024, 16, 16, 64, 4096, 50257, 1024},
    {"gpt2-large", PresetFamily::gpt2, 36, 1280, 20, 20, 64, 5120, 50257, 1024},
    {"gpt2-xl", PresetFamily::gpt2, 48, 1600, 25, 25, 64, 6400, 50257, 1024},
    {"gpt3", PresetFamily::gpt2, 96, 12288, 96, 96, 128, 49152, 50257, 2048},
    {"smollm2-135m", PresetFamily::llama, 30, 576, 9, 3, 64, 1536, 49152, 8192},
    {"smollm2-360m", PresetFamily::llama, 32, 960, 15, 5, 64, 2560, 49152, 8192},
    {"smollm2-1.7b", PresetFamily::llama, 24, 2048, 32, 32, 64, 8192, 49152, 8192},
    {"tinyllama-1.1b", PresetFamily::llama, 22, 2048, 32, 4, 64, 5632, 32000, 2048, false},
    {"llama2-7b", PresetFamily::llama, 32, 4096, 32, 32, 128, 11008, 32000, 4096, false},
    {"llama3-8b", PresetFamily::llama, 32, 4096, 32, 8, 128, 14336, 128256, 8192, false},
    {"llama3.2-1b", PresetFamily::llama, 16, 2048, 32, 8, 64, 8192, 128256, 131072},
    {"qwen2.5-0.5b", PresetFamily::llama, 24, 896, 14, 2, 64, 4864, 151936, 32768, true, true, false, 0, 1e-6f},
    {"qwen3-0.6b", PresetFamily::llama, 28, 1024, 16, 8, 128, 3072, 151936, 40960, true, false, true, 0, 1e-6f},
    {"mistral-7b", PresetFamily::llama, 32, 4096, 32, 8, 128, 14336, 32000, 32768, false, false, false, 4096},
    {"olmoe-1b-7b", PresetFamily::llama, 16, 2048, 16, 16, 128, 1024, 50304, 4096, false, false, true, 0, 1e-5f, 64, 8,
     false, true},
    {"qwen3-30b-a3b", PresetFamily::llama, 48, 2048, 32, 4, 128, 768, 151936, 40960, false, false, true, 0, 1e-6f, 128,
     8, true},
    {"mixtral-8x7b", PresetFamily::llama, 32, 4096, 32, 8, 128, 14336, 32000, 32768, false, false, false, 0, 1e-5f, 8,
     2, true},
    {"bitnet-b1.58-2b",
     PresetFamily::llama,
     30,
     2560,
     20,
     5,
     128,
     6912,
     128256,
     4096,
     true,
     false,
     false,
     0,
     1e-5f,
     0,
     0,
     false,
     false,
     true},
    {"stories260k", PresetFamily::llama, 5, 64, 8, 4, 8, 172, 512, 512},
    {"demo", PresetFamily::llama, 5, 128, 4, 2, 32, 320, 512, 256},
};

constexpr auto kNames = [] {
    std::array<const char*, std::size(kPresets)> names{};
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kPresets[i].name;
    return names;
}();

void shape_gpt2(Stack& s, Block& b) {
    s.position = Position::learned;
    s.final_norm = b.norm = Norm::layer;
    s.final_norm_bias = b.norm_bias = true;
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = b.attention.output_bias = b.feed.up_bias =
        b.feed.down_bias = true;
    b.feed.activation = Activation::gelu_tanh;
}

void shape_llama(Stack& s, Block& b, const Preset& preset) {
    s.final_norm = b.norm = Norm::rms;
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = preset.query_key_value_bias;
    b.attention.query_key_norm = preset.query_key_norm ? Norm::rms : Norm::none;
    if (preset.norms_heads_together) b.attention.head_norm = HeadNorm::together;
    b.attention.position = Position::rope;
    b.attention.rotary_dim = preset.head_dim;
    if (preset.norms_within) b.norm_place = NormPlace::within;
    b.feed.activation = preset.norms_within ? Activation::relu2 : Activation::silu;
    b.feed.gated = true;
    b.experts.n = preset.n_experts;
    b.experts.n_used = preset.n_experts_used;
    b.experts.normalize = preset.normalize_experts;
}

Config config_of(const Preset& preset) {
    Config config;
    Stack& s = config.decoder;
    Block& b = s.blocks[0];
    s.n_layers = preset.n_layers;
    s.d_model = preset.d_model;
    s.vocab_size = preset.vocab_size;
    s.max_positions = preset.max_positions;
    s.n_blocks = 1;
    s.has_output_head = true;
    s.tied_output = preset.tied_output;
    s.final_norm_epsilon = b.norm_epsilon = preset.epsilon;
    b.attention.n_heads = preset.n_heads;
    b.attention.n_kv_heads = preset.n_kv_heads;
    b.attention.head_dim = b.attention.value_head_dim = preset.head_dim;
    b.feed.d_ff = preset.d_ff;
    b.attention.window = preset.window;
    b.attention.causal = true;
    if (preset.family == PresetFamily::gpt2)
        shape_gpt2(s, b);
    else
        shape_llama(s, b, preset);
    return config;
}

}  // namespace

Config preset_config(const std::string& name) {
    for (const Preset& preset : kPresets)
        if (name == preset.name) return config_of(preset);
    throw UsageError("--preset: expected one of " + joined(preset_names()) + ", got " + name);
}

std::span<const char* const> preset_names() noexcept { return kNames; }

}  // namespace fovea
