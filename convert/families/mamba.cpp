// Mamba-2 (Dao and Gu 2024) alone; Bamba (IBM 2024), some of whose layers attend; Falcon-H1 (Zuo et al. 2025), whose layers do both.
#include <algorithm>

#include "convert/families/llama_names.h"
#include "convert/families/recurrent.h"

namespace fovea {
namespace {

constexpr ModelType kMambaTypes[] = {
    {"mamba2", R"({"num_heads": 128, "head_dim": 64, "state_size": 128, "expand": 2, "conv_kernel": 4, "n_groups": 8,
                   "max_position_embeddings": 1048576})"}};
constexpr ModelType kBambaTypes[] = {
    {"bamba", R"({"max_position_embeddings": 262144, "num_key_value_heads": 8, "mamba_n_heads": 128,
                  "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2})"}};
constexpr ModelType kFalconH1Types[] = {
    {"falcon_h1",
     R"({"max_position_embeddings": 8192, "num_key_value_heads": 8, "mamba_d_ssm": 1024, "mamba_n_heads": 128,
         "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2})"}};
constexpr auto kMambaNames = names_of({
    {Role::token_embedding, "embeddings.weight"},
    {Role::final_norm, "norm_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::recurrent_norm, "#norm.weight"},
    FOVEA_MAMBA2_NAMES("#mixer"),
});
constexpr auto kBambaNames = kLlamaNames.with({
    {Role::final_norm, "final_layernorm.weight"},
    {Role::feed_forward_norm, "#pre_ff_layernorm.weight"},
    {Role::up, "#feed_forward.up_proj.weight", Within::alone, "#feed_forward.gate_proj.weight"},
    {Role::down, "#feed_forward.down_proj.weight"},
    {Role::recurrent_norm, "#input_layernorm.weight"},
    FOVEA_MAMBA2_NAMES("#mamba"),
});
constexpr MambaNames kOwnNames = {.n_heads = "num_heads",
                                  .head_dim = "head_dim",
                                  .n_groups = "n_groups",
                                  .state_size = "state_size",
                                  .n_taps = "conv_kernel",
                                  .expand = "expand",
                                  .kernel_bias = "use_conv_bias",
                                  .bias = "use_bias"};

void read_mamba2_alone(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block =
        read_sizes(fields.with("num_attention_heads", 1u),
                   {.epsilon = "layer_norm_epsilon", .default_epsilon = 1e-5, .d_ff_may_lack = true}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    refuse_other_activation(fields, "hidden_act");
    block.feed = {};
    read_mamba2(fields, kOwnNames, result);
    set_layers(fields, {recurrent_block(block), {}, {}}, result);
}

void read_bamba(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    refuse_other_activation(fields, "hidden_act");
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    block.feed.up_bias = block.feed.gate_bias = block.feed.down_bias = fields.flag_or("mlp_bias", false);
    read_mamba2(fields, {}, result);
    std::vector<bool> attends(stack.n_layers);
    if (fields.has("attn_layer_indices")) {
        const SortedJson& list = fields.json()["attn_layer_indices"];
        for (const SortedJson& number : list) {
            if (!number.is_number_unsigned()) fields.refuse("attn_layer_indices", "numbers of layers");
            if (const auto layer = number.get<std::uint64_t>(); layer < stack.n_layers) attends[layer] = true;
        }
    }
    std::vector<LayerShape> layers;
    for (const bool attending : attends)
        layers.push_back(attending ? with_rope(fields, block, nullptr, 0.5)
                                   : LayerShape{recurrent_block(block), {}, {}});
    set_layers(fields, layers, result);
}

/// n numbers, or ones.
std::vector<double> read_factors(const Fields& fields, const char* name, std::size_t n) {
    if (!fields.has(name)) return std::vector(n, 1.0);
    const SortedJson& list = fields.json()[name];
    const auto is_number = [](const SortedJson& number) { return number.is_number(); };
    if (!list.is_array() || list.size() != n || !std::ranges::all_of(list, is_number))
        fields.refuse(name, std::to_string(n) + " numbers");
    return list.get<std::vector<double>>();
}

/// What the maps' results are multiplied with: matrices get it.
void read_map_factors(const Fields& fields, HfConfig& result) {
    const auto factor = [&](const char* name) { return fields.number_or(name, -1e9, 1e9, 1.0); };
    const auto set = [&](Role role, double of) { result.factors[role] = static_cast<float>(of); };
    const double attends = factor("attention_in_multiplier"), recurs = factor("ssm_in_multiplier");
    const std::vector<double> feeds = read_factors(fields, "mlp_multipliers", 2),
                              maps = read_factors(fields, "ssm_multipliers", 5);
    set(Role::query, attends), set(Role::key, attends * factor("key_multiplier")), set(Role::value, attends);
    set(Role::attention_output, factor("attention_out_multiplier"));
    set(Role::up, feeds[0]), set(Role::down, feeds[1]);
    set(Role::recurrent_gate, recurs * maps[0]), set(Role::recurrent_value, recurs * maps[1]);
    set(Role::recurrent_key, recurs * maps[2]), set(Role::recurrent_query, recurs * maps[3]);
    set(Role::recurrent_step, recurs * maps[4]);
    set(Role::recurrent_output, factor("ssm_out_multiplier"));
    result.stack().embedding_scale = static_cast<float>(factor("embedding_multiplier"));
    result.stack().logit_scale = static_cast<float>(factor("lm_head_multiplier"));
}

void read_falcon_h1(const Fields& all, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(all, {.default_epsilon = 1e-5}, false, stack);
    refuse_other_activation(all, "hidden_act");
    for (const char* bias : {"attention_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias"})
        refuse_true(all, bias);
    const bool whole = all.has("mamba_d_head") && !all.json()["mamba_d_head"].is_string();
    const bool says = !whole && all.has("mamba_d_ssm");
    const Fields fields =
        says ? all.with("mamba_d_head", all.count("mamba_d_ssm") / all.count("mamba_n_heads", 1, kMaxHeads)) : all;
    read_mamba2(fields, {}, result);
    RecurrentShape& r = stack.recurrent;
    if (fields.has("mamba_d_ssm") && fields.count("mamba_d_ssm") != r.value_width())
        fields.refuse("mamba_d_ssm", std::to_string(r.value_width()) + ", as mamba_n_heads of mamba_d_head have");
    if (!fields.flag_or("mamba_rms_norm", false)) r.n_norm_groups = 0;
    r.gate_first = r.n_norm_groups && !fields.flag_or("mamba_norm_before_gate", true);
    read_map_factors(fields, result);
    block.recurrent = true;
    set_layers(fields, with_rope(fields, block), result);
}

}  // namespace

const Family families::mamba2 = {
    .types = kMambaTypes, .names = kMambaNames, .outer = "backbone.", .read = read_mamba2_alone};
const Family families::bamba = {.types = kBambaTypes, .names = kBambaNames, .read = read_bamba};
const Family families::falcon_h1 = {.types = kFalconH1Types, .names = kBambaNames, .read = read_falcon_h1};

}  // namespace fovea
