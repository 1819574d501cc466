// Mixtral (Jiang et al. 2024): Mistral with experts, whose matrices are w1 (the gate), w3 (up) and w2 (down). Phi-3.5-MoE (Abdin et
// al. 2024) has layer norms, biases, and two experts that are chosen and weighted one after the other (Liu et al. 2023).
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kMixtralTypes[] = {
    {"mixtral",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
         "rope_theta": 1000000.0})"}};

constexpr ModelType kPhimoe[] = {
    {"phimoe",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "num_local_experts": 16, "rope_theta": 1000000.0,
         "rms_norm_eps": 1e-5})"}};

constexpr auto kMixtralNames = kLlamaNames.with({
    {Role::router, "#block_sparse_moe.gate.weight"},
    {Role::expert_up, "#block_sparse_moe.experts.*.w3.weight", Within::alone, "#block_sparse_moe.experts.*.w1.weight"},
    {Role::expert_down, "#block_sparse_moe.experts.*.w2.weight"},
});

void read_mixtral(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    read_experts(fields, {.n_experts = "num_local_experts"}, true, block);
    LayerShape shape = with_rope(fields, block);
    if (read_windows_of_all(fields, stack.n_layers).front())
        shape.block.attention.window = fields.count("sliding_window");
    set_layers(fields, shape, result);
}

constexpr auto kPhimoeNames = kMixtralNames.with({{Role::output_bias, "/lm_head.bias"}});

/// Rotations are multiplied by a number of their own, which is the same for short and long texts.
void read_phimoe_scale(const Fields& fields, LayerShape& layer) {
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
        if (layer.rope.scaling == RopeScaling::none || !fields.has(name)) continue;
        const Fields own = fields.object(name);
        if (layer.rope.scaling != RopeScaling::divided) own.refuse("type", "default or longrope");
        const double scale = own.number("short_mscale", 1e-3, 1e3);
        if (own.number("long_mscale", 1e-3, 1e3) != scale)
            own.refuse("long_mscale", "short_mscale, " + own.json()["short_mscale"].dump());
        layer.block.attention.rope_scale = static_cast<float>(scale);
        return;
    }
}

void read_phimoe(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack, Norm::layer);
    stack.output_bias = fields.flag_or("lm_head_bias", false);
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    read_experts(fields.with("num_experts_per_tok", 2u), {.n_experts = "num_local_experts"}, false, block);
    block.experts.router_score = RouterScore::sparse_mixer;
    block.experts.margin = static_cast<float>(2 * fields.number_or("router_jitter_noise", 0.0, 1e3, 0.01));
    LayerShape layer = with_rope(fields, block);
    read_phimoe_scale(fields, layer);
    if (fields.has("sliding_window")) layer.block.attention.window = fields.count("sliding_window");
    set_layers(fields, layer, result);
}

}  // namespace

const Family families::phimoe = {.types = kPhimoe, .names = kPhimoeNames, .read = read_phimoe};

const Family families::mixtral = {.types = kMixtralTypes, .names = kMixtralNames, .read = read_mixtral};

}  // namespace fovea
