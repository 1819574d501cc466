// Llama 4's text model (Meta 2025): layers that see chunks of positions and turn, among layers that see all, do not turn, and whose
// queries grow; experts whose weights multiply what they read.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kLlama4[] = {
    {"llama4_text",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5,
         "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "rope_theta": 500000.0,
         "attention_chunk_size": 8192, "floor_scale": 8192, "attn_scale": 0.1})"}};

constexpr auto kLlama4Names = kLlamaNames.with({
    {Role::query_norm, ""},
    {Role::key_norm, ""},
    {Role::up, "#feed_forward.up_proj.weight", Within::alone, "#feed_forward.gate_proj.weight"},
    {Role::down, "#feed_forward.down_proj.weight"},
    {Role::router, "#feed_forward.router.weight"},
    {Role::expert_up, "#feed_forward.experts.gate_up_proj", Within::fused_columns},
    {Role::expert_down, "#feed_forward.experts.down_proj", Within::fused_columns},
    {Role::shared_up, "#feed_forward.shared_expert.up_proj.weight", Within::alone,
     "#feed_forward.shared_expert.gate_proj.weight"},
    {Role::shared_down, "#feed_forward.shared_expert.down_proj.weight"},
});

/// Layers that see their chunk alone: as listed, else those that turn.
std::vector<bool> chunked_layers(const Fields& fields, const std::vector<bool>& turns) {
    if (!fields.has("layer_types")) return fields.has("attention_chunk_size") ? turns : std::vector<bool>(turns.size());
    return read_layer_words(fields, "layer_types", "full_attention", "chunked_attention", turns.size());
}

/// Layers with experts: as listed, else every so many-th.
std::vector<bool> layers_with_experts(const Fields& fields, std::uint32_t n_layers) {
    std::vector<bool> sparse = all_but_every(fields.count("interleave_moe_layer_step"), n_layers);
    sparse.flip();
    if (!fields.has("moe_layers")) return sparse;
    const SortedJson& list = fields.json()["moe_layers"];
    if (!list.is_array()) fields.refuse("moe_layers", "a list of layers");
    sparse.assign(n_layers, false);
    for (const SortedJson& number : list) {
        if (!number.is_number_unsigned()) fields.refuse("moe_layers", "numbers of layers");
        if (const auto layer = number.get<std::uint64_t>(); layer < n_layers) sparse[layer] = true;
    }
    return sparse;
}

void read_llama4(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const Block block = read_gated(fields, {}, false, stack);
    const bool bias = fields.flag_or("attention_bias", false), grows = fields.flag_or("attn_temperature_tuning", true);
    const std::vector<bool> turns = read_rotated_layers(fields, stack.n_layers),
                            chunked = chunked_layers(fields, turns),
                            sparse = layers_with_experts(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Block own = block;
        set_biases(own.attention, bias);
        if (chunked[i]) own.attention.window = fields.count("attention_chunk_size");
        own.attention.chunked = chunked[i];
        if (turns[i] && fields.flag_or("use_qk_norm", true))
            own.attention.query_key_norm = Norm::rms, own.attention.norm_turned = true;
        if (!turns[i] && grows) {
            own.attention.query_growth = static_cast<float>(fields.number("attn_scale", -1e6, 1e6));
            own.attention.growth_period = own.attention.query_growth != 0.0f ? fields.count("floor_scale") : 0;
        }
        if (sparse[i]) {
            read_experts(fields, {.n_experts = "num_local_experts"}, false, own);
            own.experts.router_score = RouterScore::sigmoid;
            own.experts.weigh_inputs = true;
            own.experts.normalize = false;
            own.experts.shared_d_ff = own.feed.d_ff;
        } else {
            own.feed.d_ff = fields.count("intermediate_size_mlp");
        }
        layers.push_back(turns[i] ? with_adjacent_rope(fields, own) : LayerShape{own, {}, {}});
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::llama4 = {.types = kLlama4, .names = kLlama4Names, .read = read_llama4};

}  // namespace fovea
