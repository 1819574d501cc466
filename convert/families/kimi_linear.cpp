// Kimi Linear (Kimi Team 2025): the delta rule with a decay for each dim of a key, and in some layers latent attention without
// positions; experts that DeepSeek 3's way chooses.
#include <cmath>

#include "convert/families/llama_names.h"
#include "convert/families/recurrent.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kKimiTypes[] = {
    {"kimi_linear",
     R"({"model_max_length": 1048576, "num_experts_per_token": 8, "num_shared_experts": 1, "num_expert_group": 1,
         "topk_group": 1, "moe_renormalize": true, "routed_scaling_factor": 2.446, "first_k_dense_replace": 1,
         "rms_norm_eps": 1e-5, "linear_head_dim": 128, "linear_num_heads": 32, "linear_conv_kernel_dim": 4})"}};
constexpr std::uint32_t kMostKimiDim = 1u << 16;

constexpr auto kKimiNames = kLlamaNames.with(kLatentNames)
                                .with({
                                    {Role::recurrent_norm, "#input_layernorm.weight"},
                                    {Role::recurrent_query, "#self_attn.q_proj.weight"},
                                    {Role::recurrent_key, "#self_attn.k_proj.weight"},
                                    {Role::recurrent_value, "#self_attn.v_proj.weight"},
                                    {Role::recurrent_gate_down, "#self_attn.g_a_proj.weight"},
                                    {Role::recurrent_gate, "#self_attn.g_b_proj.weight"},
                                    {Role::recurrent_step_down, "#self_attn.f_a_proj.weight"},
                                    {Role::recurrent_step, "#self_attn.f_b_proj.weight"},
                                    {Role::recurrent_step_bias, "#self_attn.dt_bias"},
                                    {Role::recurrent_rate, "#self_attn.b_proj.weight"},
                                    {Role::recurrent_kernel, "#self_attn.conv1d.weight"},
                                    {Role::recurrent_decay, "#self_attn.A_log"},
                                    {Role::recurrent_state_norm, "#self_attn.o_norm.weight"},
                                    {Role::recurrent_output, "#self_attn.o_proj.weight"},
                                    {Role::router, "#block_sparse_moe.gate.weight"},
                                    {Role::choice_bias, "#block_sparse_moe.gate.e_score_correction_bias"},
                                    {Role::expert_up, "#block_sparse_moe.experts.*.w3.weight", Within::alone,
                                     "#block_sparse_moe.experts.*.w1.weight"},
                                    {Role::expert_down, "#block_sparse_moe.experts.*.w2.weight"},
                                    {Role::shared_up, "#block_sparse_moe.shared_experts.up_proj.weight", Within::alone,
                                     "#block_sparse_moe.shared_experts.gate_proj.weight"},
                                    {Role::shared_down, "#block_sparse_moe.shared_experts.down_proj.weight"},
                                });

/// Fields by the names that others have for them; those of an inner object by transformers' own.
Fields with_usual_names(const Fields& all) {
    Fields fields = all;
    for (const auto& [theirs, usual] : {std::pair{"model_max_length", "max_position_embeddings"},
                                        {"num_experts_per_token", "num_experts_per_tok"},
                                        {"num_expert_group", "n_group"},
                                        {"moe_renormalize", "norm_topk_prob"}})
        if (all.has(theirs)) fields = fields.with(usual, all.json()[theirs]);
    if (!all.has("linear_attn_config")) return fields;
    const Fields inner = all.object("linear_attn_config");
    for (const auto& [theirs, usual] : {std::pair{"head_dim", "linear_head_dim"},
                                        {"num_heads", "linear_num_heads"},
                                        {"short_conv_kernel_size", "linear_conv_kernel_dim"}})
        if (inner.has(theirs)) fields = fields.with(usual, inner.json()[theirs]);
    return fields;
}

/// By a list, or by the published files' numbers of layers from 1 on; else all but every fourth from the fifth.
std::vector<bool> recurrent_kimi_layers(const Fields& fields, std::uint32_t n_layers) {
    if (fields.has("layer_types")) return read_recurrent_layers(fields, "linear_attention", n_layers);
    std::vector<bool> recurs(n_layers);
    const bool lists = fields.has("linear_attn_config") && fields.object("linear_attn_config").has("full_attn_layers");
    for (std::uint32_t i = 0; i < n_layers; ++i) recurs[i] = lists || i == 0 || i % 4 != 0;
    if (!lists) return recurs;
    const Fields inner = fields.object("linear_attn_config");
    for (const SortedJson& number : inner.json()["full_attn_layers"]) {
        if (!number.is_number_unsigned() || number.get<std::uint64_t>() - 1 >= n_layers)
            inner.refuse("full_attn_layers", "numbers of layers from 1 to " + std::to_string(n_layers));
        recurs[number.get<std::uint64_t>() - 1] = false;
    }
    return recurs;
}

RecurrentShape read_delta_by_dim(const Fields& fields) {
    const std::uint32_t n_heads = fields.count("linear_num_heads", 1, kMaxHeads),
                        dim = fields.count("linear_head_dim", 1, kMaxWidth);
    return {.n_heads = n_heads,
            .n_key_heads = n_heads,
            .key_dim = dim,
            .value_dim = dim,
            .n_norm_groups = n_heads,
            .kind = Recurrence::delta_by_dim,
            .n_taps = static_cast<std::uint8_t>(fields.count("linear_conv_kernel_dim", 1, kMaxTaps)),
            .shared_norm = true,
            .step_rank = dim,
            .sigmoid_gate = true};
}

/// Widths of heads. What turns elsewhere is a part of keys that all heads share, at frequencies of zero.
LayerShape read_kimi_latent(const Fields& fields, Block block) {
    if (!fields.flag_or("mla_use_nope", true)) fields.refuse("mla_use_nope", "true");
    if (block.norm_epsilon != 1e-6f) block.latent.norm_epsilon = 1e-6f;  // the class's, whatever the file says
    if (fields.has("q_lora_rank")) block.latent.query_rank = fields.count("q_lora_rank", 1, kMostKimiDim);
    block.latent.query_dim = fields.count("qk_nope_head_dim", 1, kMostKimiDim);
    block.latent.value_dim = fields.count("v_head_dim", 1, kMostKimiDim);
    AttentionShape& a = block.attention;
    a.rotary_dim = fields.count("qk_rope_head_dim", 2, kMostKimiDim);
    a.value_head_dim = fields.count("kv_lora_rank", 1, kMostKimiDim);
    a.head_dim = a.rotary_dim + a.value_head_dim;
    a.n_kv_heads = 1;
    a.position = Position::rope;
    a.softmax_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.rotary_dim + block.latent.query_dim)));
    return {block, {.scaling = RopeScaling::proportional, .share = 0.0, .halves = false}, {}};
}

void read_kimi_linear(const Fields& all, const std::string&, HfConfig& result) {
    const Fields fields = with_usual_names(all);
    Stack& stack = result.stack();
    const Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    refuse_other_activation(fields, "hidden_act");
    refuse_true(fields, "attention_bias");
    if (fields.text_or("moe_router_activation_func", "sigmoid") != "sigmoid")
        fields.refuse("moe_router_activation_func", "sigmoid");
    stack.recurrent = read_delta_by_dim(fields);
    result.recurrent_rows = {{{Role::recurrent_query, Role::recurrent_key, Role::recurrent_value}}};
    Block experts = block;
    const RoutingNames names{.n_experts = "num_experts", .n_shared = "num_shared_experts"};
    read_routing(fields, names, RouterScore::sigmoid, experts);
    read_expert_groups(fields, names, experts);
    const std::vector<bool> sparse = read_layers_with_experts(fields, stack.n_layers),
                            recurs = recurrent_kimi_layers(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = sparse[i] ? experts : block;
        layers.push_back(recurs[i] ? LayerShape{recurrent_block(own), {}, {}} : read_kimi_latent(fields, own));
        if (layers[i].block.latent.query_rank) result.names[{Role::query, i}] = "#self_attn.q_b_proj.weight";
    }
    result.n_skipped_layers = number_or(fields, "num_nextn_predict_layers", 0, kMaxLayers);
    set_layers(fields, layers, result);
}

/// Kernels are one tensor, decays a vector; layers without experts have the names that are published.
void settle_kimi_names(const HfConfig& config, Safetensors& files) {
    constexpr std::string_view kSaved = ".block_sparse_moe.", kPublished = ".mlp.";
    join_kernels(config, files);
    std::vector<std::string> saved;
    for (auto& [name, tensor] : files.tensors) {
        if (name.ends_with(".A_log") && tensor.shape.size() == 4 && tensor.shape[0] * tensor.shape[1] == 1)
            tensor.shape = {tensor.shape[2] * tensor.shape[3]};
        for (const char* part : {"up_proj.weight", "gate_proj.weight", "down_proj.weight"})
            if (name.ends_with(std::string(kSaved) + part)) saved.push_back(name);
    }
    for (const std::string& name : saved) {
        auto node = files.tensors.extract(name);
        node.key().replace(name.find(kSaved), kSaved.size(), kPublished);
        files.tensors.insert(std::move(node));
    }
}

}  // namespace

const Family families::kimi_linear = {.types = kKimiTypes,
                                      .names = kKimiNames,
                                      .read = read_kimi_linear,
                                      .ignores = is_of_further_tokens,
                                      .prepare = settle_kimi_names};

}  // namespace fovea
