// AFMoE (Arcee 2025): norms before and behind each part, a gate of attention's output, windows, and positions only there; experts
// that sigmoids and a learned bias choose, beside shared ones.
#include <cmath>

#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kAfmoe[] = {
    {"afmoe",
     R"({"max_position_embeddings": 16384, "head_dim": 128, "rms_norm_eps": 1e-5, "num_experts": 64,
         "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "num_shared_experts": 2, "num_dense_layers": 1,
         "global_attn_every_n_layers": 4, "sliding_window": 1024})"}};

constexpr auto kAfmoeNames = kSharedExpertNames.with({
    {Role::attention_gate, "#self_attn.gate_proj.weight"},
    {Role::attention_post_norm, "#post_attention_layernorm.weight"},
    {Role::feed_forward_norm, "#pre_mlp_layernorm.weight"},
    {Role::feed_forward_post_norm, "#post_mlp_layernorm.weight"},
    {Role::router, "#mlp.router.gate.weight"},
    {Role::choice_bias, "#mlp.expert_bias"},
});

void read_afmoe(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack);
    if (fields.flag_or("mup_enabled", false))
        stack.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(stack.d_model)));
    block.norm_place = NormPlace::both;
    block.attention.query_key_norm = Norm::rms;
    block.attention.output_gate = OutputGate::sigmoid;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    Block experts = block;
    const RoutingNames names{.n_experts = "num_experts", .n_shared = "num_shared_experts", .scale = "route_scale"};
    read_routing(fields, names, RouterScore::sigmoid, experts);
    experts.experts.normalize = true;
    const std::uint32_t n_dense = number_or(fields, "num_dense_layers", 0, kMaxLayers);
    const std::vector<bool> windowed =
        sliding_layers_or(fields, all_but_every(fields.count("global_attn_every_n_layers"), stack.n_layers));
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = i < n_dense ? block : experts;
        layers.push_back(windowed[i] ? with_rope(fields, own) : LayerShape{own, {}, {}});
    }
    set_windows(fields, windowed, layers);
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::afmoe = {.types = kAfmoe, .names = kAfmoeNames, .read = read_afmoe};

}  // namespace fovea
