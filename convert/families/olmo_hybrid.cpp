// OLMo Hybrid (Ai2 2026): the gated delta rule, whose rates go up to 2, and in every fourth layer OLMo 2's attention, with norms of what
// parts add; maybe without positions.
#include "convert/families/llama_names.h"
#include "convert/families/recurrent.h"

namespace fovea {
namespace {

constexpr ModelType kOlmoHybridTypes[] = {
    {"olmo_hybrid", R"({"max_position_embeddings": 65536, "linear_conv_kernel_dim": 4})"}};

constexpr auto kOlmoHybridNames = kLlamaNames.with({
    {Role::attention_norm, "#post_attention_layernorm.weight"},
    {Role::recurrent_norm, "#input_layernorm.weight"},
    {Role::recurrent_query, "#linear_attn.q_proj.weight"},
    {Role::recurrent_key, "#linear_attn.k_proj.weight"},
    {Role::recurrent_value, "#linear_attn.v_proj.weight"},
    {Role::recurrent_gate, "#linear_attn.g_proj.weight"},
    {Role::recurrent_step, "#linear_attn.a_proj.weight"},
    {Role::recurrent_step_bias, "#linear_attn.dt_bias"},
    {Role::recurrent_rate, "#linear_attn.b_proj.weight"},
    {Role::recurrent_kernel, "#linear_attn.conv1d.weight"},
    {Role::recurrent_decay, "#linear_attn.A_log"},
    {Role::recurrent_state_norm, "#linear_attn.o_norm.weight"},
    {Role::recurrent_output, "#linear_attn.o_proj.weight"},
});

/// As they are published.
constexpr std::pair<std::string_view, std::string_view> kOlmoHybridOlder[] = {
    {".input_layernorm.weight", ".attention_layer_norm.weight"},
    {".post_attention_layernorm.weight", ".feedforward_layer_norm.weight"}};

/// The fields of the delta rule, those that are missing by the numbers of heads and of d_model.
Fields with_delta_sizes(Fields fields, std::uint32_t n_heads, std::uint32_t d_model) {
    for (const char* name : {"linear_num_key_heads", "linear_num_value_heads"})
        if (!fields.has(name)) fields = fields.with(name, n_heads);
    if (!fields.has("linear_key_head_dim"))
        fields = fields.with("linear_key_head_dim", 3 * d_model / (4 * fields.count("linear_num_key_heads", 1)));
    if (!fields.has("linear_value_head_dim"))
        fields = fields.with("linear_value_head_dim", 2 * fields.count("linear_key_head_dim", 1, kMaxWidth));
    return fields;
}

/// Without a list all but every fourth, and the last attends in any case.
std::vector<bool> recurrent_olmo_layers(const Fields& fields, std::uint32_t n_layers) {
    if (fields.has("layer_types")) return read_recurrent_layers(fields, "linear_attention", n_layers);
    std::vector<bool> recurs = all_but_every(4, n_layers);
    if (n_layers < 4) recurs.back() = false;
    return recurs;
}

/// Published files have a base that is null; one that is missing is the usual one.
bool has_no_positions(const Fields& fields) {
    if (!fields.has("rope_parameters")) return false;
    const SortedJson& settings = fields.json()["rope_parameters"];
    return settings.contains("rope_theta") && settings["rope_theta"].is_null();
}

void read_olmo_hybrid(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack);
    refuse_other_activation(fields, "hidden_act");
    stack.recurrent = read_delta(with_delta_sizes(fields, block.attention.n_heads, stack.d_model));
    stack.recurrent.inner_norm_epsilon = 1e-5f;  // the class's, whatever the file says
    stack.recurrent.double_rate = fields.flag_or("linear_allow_neg_eigval", true);
    result.recurrent_rows = {{{Role::recurrent_query, Role::recurrent_key, Role::recurrent_value}}};

    Block attends = block;
    attends.norm_place = NormPlace::output;
    attends.attention.query_key_norm = Norm::rms;
    attends.attention.head_norm = HeadNorm::together;
    set_biases(attends.attention, fields.flag_or("attention_bias", false));
    const bool turns = !has_no_positions(fields);
    const std::vector<bool> recurs = recurrent_olmo_layers(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        if (recurs[i]) {
            layers.push_back({recurrent_block(block), {}, {}});
            continue;
        }
        result.names[{Role::feed_forward_norm, i}] = "#post_feedforward_layernorm.weight";
        layers.push_back(turns ? with_rope(fields, attends) : LayerShape{attends, {}, {}});
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::olmo_hybrid = {.types = kOlmoHybridTypes,
                                      .names = kOlmoHybridNames,
                                      .read = read_olmo_hybrid,
                                      .older = kOlmoHybridOlder,
                                      .prepare = join_kernels};

}  // namespace fovea
