// Architectures that came after those of settle.cpp.
#include <cmath>
#include <cstring>

#include "convert/families/xielu.h"
#include "convert/gguf/settle.h"

namespace fovea {
namespace {

/// A number for each layer; one for all is there as often.
std::vector<float> numbers_of_layers(const Gguf& file, const std::string& key, std::uint32_t n_layers) {
    std::vector<float> numbers(n_layers);
    if (!file.has_list(key, GgufKind::f32)) {
        std::fill(numbers.begin(), numbers.end(), static_cast<float>(file.number(key, -1e9, 1e9)));
        return numbers;
    }
    const std::span<const std::byte> bytes = file.list_bytes(key, GgufKind::f32);
    if (bytes.size() != numbers.size() * sizeof(float)) file.refuse(key, "a number for each layer");
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    for (const float number : numbers)
        if (!(std::fabs(number) <= 1e9f)) file.refuse(key, "finite numbers");
    return numbers;
}

}  // namespace

void settle_apertus(const Gguf& file, const std::string&, GgufConfig& config) {
    const std::uint32_t n = config.stack.n_layers;
    const auto read = [&](const char* name) { return numbers_of_layers(file, "xielu." + std::string(name), n); };
    const std::vector<float> alphas = read("alpha_p"), negatives = read("alpha_n"), betas = read("beta"),
                             epsilons = read("eps");
    for (std::uint32_t i = 0; i < n; ++i)
        config.xielu.push_back(xielu_numbers(alphas[i], negatives[i], betas[i], epsilons[i]));
    config.stack.blocks[0].feed.xielu = true;
}

void settle_afmoe(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    settle_gemma(file, prefix, config);
    for (std::uint32_t i = 0; i < config.stack.n_blocks; ++i)
        config.stack.blocks[i].attention.output_gate = OutputGate::sigmoid;
    settle_routed(file, prefix, config);
}

void settle_hunyuan(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    Block& b = config.stack.blocks[0];
    if (b.attention.query_key_norm == Norm::none) file.refuse("tensor blk.0.attn_q_norm.weight", "a vector");
    b.attention.norm_turned = true;
    if (b.experts.n) b.experts.shared_d_ff = file.count_or(prefix + "expert_shared_feed_forward_length", b.feed.d_ff);
    b.experts.shared_gate = false;
}

void settle_minicpm3(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr float kEmbedding = 12.0f, kDepth = 1.4f, kWidth = 256.0f;
    settle_latent(file, prefix, config);
    Stack& stack = config.stack;
    stack.embedding_scale = kEmbedding;
    stack.logit_scale = kWidth / static_cast<float>(stack.d_model);
    stack.blocks[0].residual_scale =
        static_cast<float>(static_cast<double>(kDepth) / std::sqrt(static_cast<double>(stack.n_layers)));
}

void settle_llama4(const Gguf& file, const std::string& prefix, GgufConfig& config) {
    constexpr std::uint32_t kChunk = 8192, kPeriod = 4, kWithoutNorms = 128;
    constexpr float kGrowth = 0.1f;
    const Block all = config.stack.blocks[0];
    const bool sees_all =
        file.has(prefix + "attention.sliding_window") && file.count(prefix + "attention.sliding_window", 0) == 0;
    const std::string step_key = prefix + "interleave_moe_layer_step", width_key = prefix + "feed_forward_length";
    const std::uint32_t step = file.has(step_key) ? file.count(step_key, 0) : 1;
    std::vector<LayerShape> layers = gguf_layers(config);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        Block& b = layers[i].block;
        const bool turns = sees_all || (i + 1) % kPeriod != 0;
        if (turns && all.experts.n != kWithoutNorms)
            b.attention.query_key_norm = Norm::rms, b.attention.norm_turned = true;
        if (turns && !sees_all) b.attention.window = kChunk, b.attention.chunked = true;
        if (!turns) {
            b.attention.position = Position::none;
            b.attention.rotary_dim = 0;
            b.attention.rope_scale = 1.0f;
            b.attention.query_growth = kGrowth, b.attention.growth_period = kChunk;
        }
        if (!all.experts.n || !step || (i + 1) % step) {
            b.feed.d_ff = file.count(width_key);
            b.experts = {};
            continue;
        }
        b.experts.router_score = RouterScore::sigmoid;
        b.experts.weigh_inputs = true;
        b.experts.normalize = false;
        b.experts.shared_gate = false;
        b.experts.shared_d_ff = b.feed.d_ff;
    }
    set_gguf_layers(file, prefix + "block_count", layers, config);
}

}  // namespace fovea
