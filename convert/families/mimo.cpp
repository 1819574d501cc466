// MiMo 2 Flash (Xiaomi 2025): windows with sinks and twice as many key-value heads as full layers have, heads of values of their own
// width; experts that DeepSeek 3's way chooses.
#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kMimoTypes[] = {
    {"mimo_v2_flash",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128,
         "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "rms_norm_eps": 1e-5,
         "sliding_window": 129, "attention_value_scale": 0.707,
         "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 5000000.0},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})"}};

constexpr auto kMimoNames = kExpertNames.with({
    {Role::attention_sinks, "#self_attn.attention_sink_bias"},
    {Role::choice_bias, "#mlp.gate.e_score_correction_bias"},
});
constexpr std::pair<std::string_view, std::string_view> kMimoOlder[] = {
    {".self_attn.attention_sink_bias", ".self_attn.sinks"}};

/// The first layer and every sixth see all if no field says which.
std::vector<bool> windowed_mimo_layers(const Fields& fields, std::uint32_t n_layers) {
    std::vector<bool> windowed = all_but_every(6, n_layers);
    windowed[0] = false;
    return sliding_layers_or(fields, windowed);
}

void read_mimo(const Fields& fields, const std::string&, HfConfig& result) {
    constexpr double kTurning = 0.334;
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    AttentionShape& a = block.attention;
    a.value_head_dim = fields.count("v_head_dim", 1, kMaxWidth);
    a.query_bias = a.key_bias = a.value_bias = fields.flag_or("attention_bias", false);
    // Values are multiplied; so is what the output map makes of them.
    if (fields.has("attention_value_scale"))
        result.factors[Role::attention_output] = static_cast<float>(fields.number("attention_value_scale", -1e6, 1e6));
    const bool counts_others = fields.has("sliding_window_size");  // which the row itself comes on top of
    const std::uint32_t window =
        counts_others ? fields.count("sliding_window_size") + 1 : fields.count("sliding_window");
    Block experts = block;
    read_routing(fields, {.n_shared = nullptr}, RouterScore::sigmoid, experts);
    read_expert_groups(fields, {}, experts);
    const std::vector<bool> windowed = windowed_mimo_layers(fields, stack.n_layers),
                            sparse = read_layers_with_experts(
                                fields.has("mlp_layer_types") ? fields : fields.with("first_k_dense_replace", 1u),
                                stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Block own = sparse[i] ? experts : block;
        if (windowed[i]) {
            own.attention.window = window;
            own.attention.n_kv_heads *= 2;
            own.attention.attention_sinks = true;
            if (own.attention.n_heads % own.attention.n_kv_heads)
                fields.refuse("num_key_value_heads", "a number whose double divides num_attention_heads");
        }
        layers.push_back(with_rope(fields, own, windowed[i] ? "sliding_attention" : "full_attention", kTurning));
    }
    set_layers(fields, layers, result);
}

/// Tensors that predict tokens behind the next.
bool is_of_mimo_further_tokens(std::string_view name) { return name.starts_with("model.mtp."); }

}  // namespace

const Family families::mimo = {.types = kMimoTypes,
                               .names = kMimoNames,
                               .read = read_mimo,
                               .older = kMimoOlder,
                               .ignores = is_of_mimo_further_tokens};

}  // namespace fovea
