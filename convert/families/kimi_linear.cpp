// Kimi Linear (Kimi Team 2025): the delta rule with a decay for each dim of a key, and in some layers latent attention without
// positions; experts that DeepSeek 3's way chooses. Ling 3 (Ant Group 2026): the same with bounded decays, and DeepSeek's attention
// with a gate for each head.
#include <cmath>

#include "convert/families/latent.h"
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
constexpr ModelType kLingTypes[] = {
    {"bailing_hybrid",
     R"({"max_position_embeddings": 262144, "num_experts_per_tok": 8, "num_shared_experts": 1, "n_group": 8, "topk_group": 4,
         "norm_topk_prob": true, "routed_scaling_factor": 2.5, "first_k_dense_replace": 2, "num_nextn_predict_layers": 1,
         "head_dim": 128, "short_conv_kernel_size": 4, "layer_group_size": 6, "kda_safe_gate": true,
         "kda_lower_bound": -5.0, "rope_theta": 6000000.0})"}};
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

constexpr auto kLingNames = kSharedExpertNames.with({
    {Role::token_embedding, "word_embeddings.weight"},
    {Role::query, "#attention.q_proj.weight"},
    {Role::query_down, "#attention.q_a_proj.weight"},
    {Role::query_down_norm, "#attention.q_a_layernorm.weight"},
    {Role::key, "#attention.kv_a_proj_with_mqa.weight"},
    {Role::latent_norm, "#attention.kv_a_layernorm.weight"},
    {Role::latent_query, "#attention.kv_b_proj.weight"},
    {Role::latent_value, "#attention.kv_b_proj.weight"},
    {Role::attention_gate, "#attention.g_proj.weight"},
    {Role::attention_output, "#attention.dense.weight"},
    {Role::recurrent_norm, "#input_layernorm.weight"},
    {Role::recurrent_query, "#attention.q_proj.weight"},
    {Role::recurrent_key, "#attention.k_proj.weight"},
    {Role::recurrent_value, "#attention.v_proj.weight"},
    {Role::recurrent_gate, "#attention.g_proj.weight"},
    {Role::recurrent_step, "#attention.f_proj.weight"},
    {Role::recurrent_step_bias, "#attention.dt_bias"},
    {Role::recurrent_rate, "#attention.b_proj.weight"},
    {Role::recurrent_kernel, "#attention.conv1d.weight"},
    {Role::recurrent_decay, "#attention.A_log"},
    {Role::recurrent_state_norm, "#attention.o_norm.weight"},
    {Role::recurrent_output, "#attention.dense.weight"},
    {Role::choice_bias, "#mlp.gate.expert_bias"},
});
constexpr std::pair<std::string_view, std::string_view> kLingOlder[] = {
    {".attention.dense.weight", ".attention.o_proj.weight"}};

/// Fields by the names that others have for them; those of an inner object by transformers' own.
Fields with_usual_names(const Fields& all) {
    Fields fields = all;
    for (const auto& [theirs, usual] : {std::pair{"model_max_length", "max_position_embeddings"},
                                        {"num_experts_per_token", "num_experts_per_tok"},
                                        {"num_expert_group", "n_group"},
                                        {"n_shared_experts", "num_shared_experts"},
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

/// The same with the names of Ling's fields. Heads' decays have a bound; maps are of the row.
RecurrentShape read_ling_delta(const Fields& all) {
    Fields fields = all;
    for (const auto& [theirs, usual] : {std::pair{"head_dim", "linear_head_dim"},
                                        {"num_attention_heads", "linear_num_heads"},
                                        {"short_conv_kernel_size", "linear_conv_kernel_dim"}})
        if (all.has(theirs) && !all.has(usual)) fields = fields.with(usual, all.json()[theirs]);
    RecurrentShape r = read_delta_by_dim(fields);
    r.step_rank = 0;
    if (fields.flag_or("kda_safe_gate", true))
        r.step_most = static_cast<float>(-fields.number("kda_lower_bound", -1e6, -1e-6));
    return r;
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

/// Ling's layers have another attention.
void read_kimi_linear(const Fields& all, const std::string& type, HfConfig& result) {
    const bool is_ling = type == kLingTypes[0].name;
    const Fields fields = with_usual_names(all);
    Stack& stack = result.stack();
    const Block block = read_gated(fields, {.default_epsilon = is_ling ? 1e-6 : 1e-5}, false, stack);
    refuse_other_activation(fields, "hidden_act");
    refuse_true(fields, "attention_bias");
    const char* const scores = is_ling ? "score_function" : "moe_router_activation_func";
    if (fields.text_or(scores, "sigmoid") != "sigmoid") fields.refuse(scores, "sigmoid");
    stack.recurrent = is_ling ? read_ling_delta(fields) : read_delta_by_dim(fields);
    result.recurrent_rows = {{{Role::recurrent_query, Role::recurrent_key, Role::recurrent_value}}};
    Block experts = block;
    const RoutingNames names{.n_experts = "num_experts", .n_shared = "num_shared_experts"};
    read_routing(fields, names, RouterScore::sigmoid, experts);
    read_expert_groups(fields, names, experts);
    const bool in_turn = is_ling && !fields.has("layer_types");
    const std::vector<bool> sparse = read_layers_with_experts(fields, stack.n_layers),
                            recurs = in_turn ? all_but_every(fields.count("layer_group_size", 1), stack.n_layers)
                                             : recurrent_kimi_layers(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = sparse[i] ? experts : block;
        layers.push_back(recurs[i] ? LayerShape{recurrent_block(own), {}, {}}
                         : is_ling ? read_latent(fields, type, own)
                                   : read_kimi_latent(fields, own));
        if (!recurs[i] && is_ling) layers[i].block.attention.output_gate = OutputGate::sigmoid_of_heads;
        if (layers[i].block.latent.query_rank)
            result.names[{Role::query, i}] = is_ling ? "#attention.q_b_proj.weight" : "#self_attn.q_b_proj.weight";
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
const Family families::bailing_hybrid = {.types = kLingTypes,
                                         .names = kLingNames,
                                         .read = read_kimi_linear,
                                         .older = kLingOlder,
                                         .ignores = is_of_further_tokens,
                                         .prepare = join_kernels};

}  // namespace fovea
