// Mamba-2 (Dao and Gu 2024) alone, and Bamba (IBM 2024), some of whose layers attend.
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

void refuse_other_activation(const Fields& fields, const char* name) {
    if (read_activation(fields, name, "silu") != Activation::silu) fields.refuse(name, "silu");
}

void read_mamba(const Fields& fields, const std::string&, HfConfig& result) {
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

}  // namespace

const Family families::mamba2 = {.types = kMambaTypes, .names = kMambaNames, .outer = "backbone.", .read = read_mamba};
const Family families::bamba = {.types = kBambaTypes, .names = kBambaNames, .read = read_bamba};

}  // namespace fovea
