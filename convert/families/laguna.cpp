// Laguna (Poolside 2026): layers with heads of their own number, whose output the softplus of a map gates; windows; experts that
// sigmoids and a learned bias choose beside a shared one.
#include <string_view>

#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kLagunaTypes[] = {
    {"laguna",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 8,
         "num_experts": 256, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "sliding_window": 512,
         "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500000.0,
                                                "partial_rotary_factor": 0.5},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})"}};

constexpr auto kLagunaNames = kExpertNames.with({
    {Role::attention_gate, "#self_attn.g_proj.weight"},
    {Role::choice_bias, "#mlp.experts.e_score_correction_bias"},
    {Role::shared_up, "#mlp.shared_expert.up_proj.weight", Within::alone, "#mlp.shared_expert.gate_proj.weight"},
    {Role::shared_down, "#mlp.shared_expert.down_proj.weight"},
});

OutputGate read_gating(const Fields& fields) {
    const SortedJson& gating = fields.has("gating") ? fields.json()["gating"] : SortedJson(true);
    if (gating == true || gating == "per-head") return OutputGate::softplus_of_heads;
    if (gating != "per-element") fields.refuse("gating", "true, per-head or per-element");
    return OutputGate::softplus;
}

/// Query heads of each layer.
std::vector<std::uint32_t> read_laguna_heads(const Fields& fields, const Stack& stack, const AttentionShape& a) {
    constexpr const char* kName = "num_attention_heads_per_layer";
    std::vector<std::uint32_t> heads(stack.n_layers, a.n_heads);
    if (!fields.has(kName)) return heads;
    const SortedJson& list = fields.json()[kName];
    if (!list.is_array() || list.size() != heads.size())
        fields.refuse(kName, std::to_string(heads.size()) + " numbers");
    for (std::size_t i = 0; i < heads.size(); ++i) {
        const std::uint64_t n = list[i].is_number_unsigned() ? list[i].get<std::uint64_t>() : 0;
        if (n == 0 || n > kMaxHeads || n % a.n_kv_heads) fields.refuse(kName, "multiples of num_key_value_heads");
        heads[i] = static_cast<std::uint32_t>(n);
    }
    return heads;
}

void read_laguna(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack);
    refuse_true(fields, "moe_apply_router_weight_on_input");
    if (fields.number_or("moe_router_logit_softcapping", -1e9, 1e9, 0.0) > 0.0)
        fields.refuse("moe_router_logit_softcapping", "0");
    block.attention.query_key_norm = Norm::rms;
    block.attention.output_gate = read_gating(fields);
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    Block experts = block;
    read_routing(fields, {.n_experts = "num_experts", .n_shared = nullptr, .scale = "moe_routed_scaling_factor"},
                 RouterScore::sigmoid, experts);
    experts.experts.normalize = true;
    experts.experts.shared_d_ff = fields.count("shared_expert_intermediate_size", 1, kMaxWidth);
    const std::vector<bool> windowed = sliding_layers_or(fields, std::vector<bool>(stack.n_layers)),
                            sparse = read_layers_with_experts(
                                fields.has("mlp_layer_types") ? fields : fields.with("first_k_dense_replace", 1u),
                                stack.n_layers);
    const std::vector<std::uint32_t> heads = read_laguna_heads(fields, stack, block.attention);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Block own = sparse[i] ? experts : block;
        own.attention.n_heads = heads[i];
        layers.push_back(with_rope(fields, own, windowed[i] ? "sliding_attention" : "full_attention", 1.0));
    }
    set_windows(fields, windowed, layers);
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::laguna = {.types = kLagunaTypes, .names = kLagunaNames, .read = read_laguna};

}  // namespace fovea
