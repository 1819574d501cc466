// Qwen's mixtures: 1.5 and 2 (Yang et al. 2024), with a shared expert and a gate for it; 3 (Yang et al. 2025) with norms of
// queries and keys. Some of their layers may have one feed-forward part for all rows. The text model of Qwen 3 VL has its experts
// in one tensor, and reads plain texts as 3 does: a position's three numbers are equal then. Mellum 2 (JetBrains 2025) is 3 with
// rotary settings of their own for windows.
#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kQwenMoeTypes[] = {
    {"qwen2_moe",
     R"({"max_position_embeddings": 32768, "max_window_layers": 28, "num_key_value_heads": 16, "num_experts": 60,
         "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632})"},
    {"qwen3_moe",
     R"({"max_position_embeddings": 32768, "num_key_value_heads": 4, "num_experts_per_tok": 8,
         "moe_intermediate_size": 768})"}};
constexpr ModelType kVlTypes[] = {
    {"qwen3_vl_moe_text",
     R"({"max_position_embeddings": 128000, "num_key_value_heads": 16, "num_experts_per_tok": 4,
         "moe_intermediate_size": 1408, "rope_theta": 500000.0})"}};

constexpr ModelType kMellum[] = {
    {"mellum",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 4, "head_dim": 128, "num_experts_per_tok": 8,
         "moe_intermediate_size": 896, "norm_topk_prob": true, "sliding_window": 1024,
         "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500000.0},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})"}};

constexpr auto kQwenMoeNames = kExpertNames.with({
    {Role::shared_gate, "#mlp.shared_expert_gate.weight"},
    {Role::shared_up, "#mlp.shared_expert.up_proj.weight", Within::alone, "#mlp.shared_expert.gate_proj.weight"},
    {Role::shared_down, "#mlp.shared_expert.down_proj.weight"},
});

constexpr auto kVlNames = kLlamaNames.with({
    {Role::router, "#mlp.gate.weight"},
    {Role::expert_up, "#mlp.experts.gate_up_proj", Within::fused_either},
    {Role::expert_down, "#mlp.experts.down_proj", Within::fused_either},
});

/// If it is used, Qwen 3's window is every layer's; Qwen 2's every other layer's, of those below max_window_layers.
std::vector<bool> qwen_moe_windows(const Fields& fields, bool is_third, std::uint32_t n_layers) {
    const bool is_used = fields.flag_or("use_sliding_window", false) && fields.has("sliding_window");
    if (is_third) return std::vector<bool>(n_layers, is_used);
    if (!is_used || fields.has("layer_types")) return read_qwen_windows(fields, n_layers);
    const std::uint32_t n_below = fields.count("max_window_layers", 0);
    std::vector<bool> windowed(n_layers);
    for (std::uint32_t i = 0; i < n_layers && i < n_below; i += 2) windowed[i] = true;
    return windowed;
}

void read_qwen_moe(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack);
    const bool sees = type == "qwen3_vl_moe_text", is_third = type == "qwen3_moe" || sees;
    block.attention.query_key_norm = is_third ? Norm::rms : Norm::none;
    block.attention.output_bias = is_third && fields.flag_or("attention_bias", false);
    block.attention.query_bias = block.attention.key_bias = block.attention.value_bias =
        is_third ? block.attention.output_bias : fields.flag_or("qkv_bias", true);

    Block sparse = block;
    const char* shared = is_third ? nullptr : "shared_expert_intermediate_size";
    read_experts(fields, {.d_ff = "moe_intermediate_size", .shared_d_ff = shared}, sees, sparse);
    const std::vector<bool> windowed =
        sees ? std::vector<bool>(stack.n_layers) : qwen_moe_windows(fields, is_third, stack.n_layers);
    const std::vector<bool> is_sparse = read_sparse_layers(fields, stack.n_layers);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        layers.push_back(with_rope(fields, is_sparse[i] ? sparse : block));
        if (windowed[i]) layers.back().block.attention.window = fields.count("sliding_window");
    }
    set_layers(fields, layers, result);
}

void read_mellum(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack);
    block.attention.query_key_norm = Norm::rms;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    Block sparse = block;
    read_experts(fields, {.d_ff = "moe_intermediate_size"}, false, sparse);
    const std::vector<bool> is_sparse = read_layers_with_experts(fields, stack.n_layers),
                            windowed = sliding_layers_or(fields, std::vector<bool>(stack.n_layers));
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        layers.push_back(
            with_rope(fields, is_sparse[i] ? sparse : block, windowed[i] ? "sliding_attention" : "full_attention"));
    set_windows(fields, windowed, layers);
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::mellum = {
    .types = kMellum, .names = kExpertNames, .read = read_mellum, .ignores = is_of_further_tokens};

const Family families::qwen_moe = {.types = kQwenMoeTypes, .names = kQwenMoeNames, .read = read_qwen_moe};

const Family families::qwen_vl_moe = {.types = kVlTypes, .names = kVlNames, .read = read_qwen_moe};

}  // namespace fovea
