// Mamba (Gu and Dao 2023) and Falcon Mamba (Zuo et al. 2024) alone; Jamba (Lieber et al. 2024), some of whose layers attend, and some
// have experts.
#include "convert/families/llama_names.h"
#include "convert/families/recurrent.h"

namespace fovea {
namespace {

constexpr ModelType kSelectiveTypes[] = {
    {"mamba", R"({"state_size": 16, "expand": 2, "conv_kernel": 4, "max_position_embeddings": 1048576})"},
    {"falcon_mamba", R"({"state_size": 16, "expand": 2, "conv_kernel": 4, "max_position_embeddings": 1048576})"}};
constexpr ModelType kJambaTypes[] = {
    {"jamba",
     R"({"max_position_embeddings": 262144, "num_key_value_heads": 8, "num_experts_per_tok": 2, "num_experts": 16,
         "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8, "attn_layer_offset": 4,
         "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2})"}};
constexpr auto kSelectiveNames = names_of({
    {Role::token_embedding, "embeddings.weight"},
    {Role::final_norm, "norm_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::recurrent_norm, "#norm.weight"},
    FOVEA_MAMBA_NAMES("#mixer"),
});
constexpr auto kJambaNames = kLlamaNames.with({
    {Role::final_norm, "final_layernorm.weight"},
    {Role::feed_forward_norm, "#pre_ff_layernorm.weight"},
    {Role::up, "#feed_forward.up_proj.weight", Within::alone, "#feed_forward.gate_proj.weight"},
    {Role::down, "#feed_forward.down_proj.weight"},
    {Role::router, "#feed_forward.router.weight"},
    {Role::expert_up, "#feed_forward.experts.*.up_proj.weight", Within::alone,
     "#feed_forward.experts.*.gate_proj.weight"},
    {Role::expert_down, "#feed_forward.experts.*.down_proj.weight"},
    {Role::recurrent_norm, "#input_layernorm.weight"},
    {Role::recurrent_query_norm, "#mamba.c_layernorm.weight"},
    {Role::recurrent_key_norm, "#mamba.b_layernorm.weight"},
    {Role::recurrent_step_norm, "#mamba.dt_layernorm.weight"},
    FOVEA_MAMBA_NAMES("#mamba"),
});

void read_mamba_alone(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block =
        read_sizes(fields.with("num_attention_heads", 1u),
                   {.epsilon = "layer_norm_epsilon", .default_epsilon = 1e-5, .d_ff_may_lack = true}, Norm::rms, stack);
    read_output_head(fields, true, stack);
    refuse_other_activation(fields, "hidden_act");
    block.feed = {};
    read_mamba(fields,
               {.state_size = "state_size",
                .n_taps = "conv_kernel",
                .expand = "expand",
                .kernel_bias = "use_conv_bias",
                .bias = "use_bias",
                .step_rank = "time_step_rank"},
               result);
    if (type == "falcon_mamba")
        stack.recurrent.inner_norm_epsilon = static_cast<float>(fields.number_or("mixer_rms_eps", 1e-30, 1.0, 1e-6));
    set_layers(fields, {recurrent_block(block), {}, {}}, result);
}

/// Every so many layers, from one on.
std::vector<bool> every(const Fields& fields, const char* period, const char* offset, std::uint32_t n_layers) {
    const std::uint32_t n = fields.count(period, 1, kMaxLayers), first = fields.count(offset, 0, n - 1);
    std::vector<bool> layers(n_layers);
    for (std::uint32_t i = first; i < n_layers; i += n) layers[i] = true;
    return layers;
}

void read_jamba(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const Block block = read_gated(fields, {.default_epsilon = 1e-6}, false, stack);
    refuse_other_activation(fields, "hidden_act");
    read_mamba(fields, {}, result);
    stack.recurrent.inner_norm_epsilon = block.norm_epsilon;
    Block sparse = block;
    read_experts(fields, {}, false, sparse);
    sparse.experts.normalize = false;
    const std::vector<bool> attends = every(fields, "attn_layer_period", "attn_layer_offset", stack.n_layers);
    std::vector<bool> routes = every(fields, "expert_layer_period", "expert_layer_offset", stack.n_layers);
    if (sparse.experts.n == 1) routes.assign(stack.n_layers, false);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = routes[i] ? sparse : block;
        layers.push_back({attends[i] ? own : recurrent_block(own), {}, {}});
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::mamba = {
    .types = kSelectiveTypes, .names = kSelectiveNames, .outer = "backbone.", .read = read_mamba_alone};
const Family families::jamba = {.types = kJambaTypes, .names = kJambaNames, .read = read_jamba};

}  // namespace fovea
