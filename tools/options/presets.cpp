#include "tools/options/presets.h"

#include <array>

#include "host/base/words.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
namespace {

/// What a shape has beside its sizes.
enum Trait : unsigned {
    kGpt2 = 1,  ///< as GPT-2 is built; others are as Llama is
    kTied = 2,  ///< the output head is the embedding
    kQkvBias = 4,
    kQkNorm = 8,
    kHeadsTogether = 16,  ///< that norm is of all heads
    kNormalized = 32,     ///< experts' weights
    kNormsWithin = 64
};

/// What a shape with recurrent layers has in place of attention, and a number for each layer: 0 if it attends, 1 if it is recurrent.
struct Hybrid {
    RecurrentShape recurrent;
    std::span<const std::uint8_t> layers;
    std::uint32_t rotary_dim;
    OutputGate output_gate;
};

constexpr std::uint8_t kFourths[] = {1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0};
constexpr Hybrid kQwen35 = {{.n_heads = 16,
                             .n_key_heads = 16,
                             .key_dim = 128,
                             .value_dim = 128,
                             .n_norm_groups = 16,
                             .kind = Recurrence::delta,
                             .n_taps = 4,
                             .shared_norm = true},
                            kFourths,
                            64,
                            OutputGate::sigmoid};
constexpr std::uint8_t kLfm2Layers[] = {1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1};
constexpr Hybrid kLfm2 = {
    {.n_heads = 1, .n_key_heads = 1, .key_dim = 2048, .value_dim = 2048, .kind = Recurrence::convolution, .n_taps = 3},
    kLfm2Layers,
    64,
    OutputGate::none};

/// One row per model, as its own config.json or paper gives it.
struct Preset {
    const char* name;
    std::uint32_t n_layers, d_model, n_heads, n_kv_heads, head_dim, d_ff, vocab_size, max_positions;
    unsigned traits = kTied;
    std::uint32_t window = 0;
    float epsilon = 1e-5f;
    std::uint32_t n_experts = 0;
    std::uint16_t n_experts_used = 0;
    const Hybrid* hybrid = nullptr;

    [[nodiscard]] constexpr bool has(Trait trait) const { return (traits & trait) != 0; }
};

// GPT-3 is Brown et al. 2020, table 2.1, its banded layers taken as full ones.
constexpr Preset kPresets[] = {
    {"gpt2", 12, 768, 12, 12, 64, 3072, 50257, 1024, kGpt2 | kTied},
    {"gpt2-medium", 24, 1024, 16, 16, 64, 4096, 50257, 1024, kGpt2 | kTied},
    {"gpt2-large", 36, 1280, 20, 20, 64, 5120, 50257, 1024, kGpt2 | kTied},
    {"gpt2-xl", 48, 1600, 25, 25, 64, 6400, 50257, 1024, kGpt2 | kTied},
    {"gpt3", 96, 12288, 96, 96, 128, 49152, 50257, 2048, kGpt2 | kTied},
    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, 8192},
    {"smollm2-360m", 32, 960, 15, 5, 64, 2560, 49152, 8192},
    {"smollm2-1.7b", 24, 2048, 32, 32, 64, 8192, 49152, 8192},
    {"tinyllama-1.1b", 22, 2048, 32, 4, 64, 5632, 32000, 2048, 0},
    {"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 4096, 0},
    {"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 0},
    {"llama3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, 131072},
    {"qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, 32768, kTied | kQkvBias, 0, 1e-6f},
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, 40960, kTied | kQkNorm, 0, 1e-6f},
    {"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000, 32768, 0, 4096},
    {"olmoe-1b-7b", 16, 2048, 16, 16, 128, 1024, 50304, 4096, kQkNorm | kHeadsTogether, 0, 1e-5f, 64, 8},
    {"qwen3-30b-a3b", 48, 2048, 32, 4, 128, 768, 151936, 40960, kQkNorm | kNormalized, 0, 1e-6f, 128, 8},
    {"mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, 32768, kNormalized, 0, 1e-5f, 8, 2},
    {"qwen3.5-0.8b", 24, 1024, 8, 2, 256, 3584, 248320, 262144, kTied | kQkNorm, 0, 1e-6f, 0, 0, &kQwen35},
    {"lfm2-1.2b", 16, 2048, 32, 8, 64, 8192, 65536, 128000, kTied | kQkNorm, 0, 1e-5f, 0, 0, &kLfm2},
    {"bitnet-b1.58-2b", 30, 2560, 20, 5, 128, 6912, 128256, 4096, kTied | kNormsWithin},
    {"stories260k", 5, 64, 8, 4, 8, 172, 512, 512},
    {"demo", 5, 128, 4, 2, 32, 320, 512, 256},
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
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = preset.has(kQkvBias);
    b.attention.query_key_norm = preset.has(kQkNorm) ? Norm::rms : Norm::none;
    if (preset.has(kHeadsTogether)) b.attention.head_norm = HeadNorm::together;
    b.attention.position = Position::rope;
    b.attention.rotary_dim = preset.head_dim;
    if (preset.has(kNormsWithin)) b.norm_place = NormPlace::within;
    b.feed.activation = preset.has(kNormsWithin) ? Activation::relu2 : Activation::silu;
    b.feed.gated = true;
    b.experts.n = preset.n_experts;
    b.experts.n_used = preset.n_experts_used;
    b.experts.normalize = preset.has(kNormalized);
}

void add_recurrent(Stack& s, const Hybrid& hybrid) {
    s.n_blocks = 2;
    s.blocks[1] = s.blocks[0];
    s.blocks[1].attention = {.causal = true};
    s.blocks[1].recurrent = true;
    s.blocks[0].attention.rotary_dim = hybrid.rotary_dim;
    s.blocks[0].attention.output_gate = hybrid.output_gate;
    s.recurrent = hybrid.recurrent;
    s.layer_blocks = hybrid.layers;
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
    s.tied_output = preset.has(kTied);
    s.final_norm_epsilon = b.norm_epsilon = preset.epsilon;
    b.attention.n_heads = preset.n_heads;
    b.attention.n_kv_heads = preset.n_kv_heads;
    b.attention.head_dim = b.attention.value_head_dim = preset.head_dim;
    b.feed.d_ff = preset.d_ff;
    b.attention.window = preset.window;
    b.attention.causal = true;
    if (preset.has(kGpt2))
        shape_gpt2(s, b);
    else
        shape_llama(s, b, preset);
    if (preset.hybrid) add_recurrent(s, *preset.hybrid);
    return config;
}

}  // namespace

Config preset_config(const std::string& name) {
    for (const Preset& preset : kPresets)
        if (name == preset.name) return config_of(preset);
    throw UsageError("--preset: expected one of " + joined(preset_names()) + ", got " + name);
}

void check_one_source(const std::string& model, const std::string& preset) {
    if (model.empty() == preset.empty())
        throw UsageError(std::string("MODEL or --preset NAME: expected one of them, got ") +
                         (model.empty() ? "neither" : "both"));
}

std::span<const char* const> preset_names() noexcept { return kNames; }

}  // namespace fovea
