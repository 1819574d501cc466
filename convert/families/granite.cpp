// Families that are Llama but for a few settings. Granite (IBM 2024), with experts or without, has multipliers, as have Granite
// SWA, with windows and a learned score for no key, HyperCLOVA X (NAVER 2024), with norms behind its parts, and MiniCPM (Hu et al.
// 2024). SmolLM 3 (Hugging Face 2025) has layers without positions. ERNIE 4.5 (Baidu 2025) and Helium (Kyutai 2025) turn adjacent
// dims.
#include <algorithm>
#include <cmath>

#include "convert/families/llama_names.h"
#include "convert/families/recurrent.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kGraniteTypes[] = {
    {"granite", R"({"max_position_embeddings": 2048})"},
    {"smollm3", R"({"max_position_embeddings": 32768, "num_key_value_heads": 4, "rope_theta": 2000000.0})"},
    {"ernie4_5",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "rope_theta": 500000.0})"},
    {"helium", R"({"max_position_embeddings": 4096, "num_key_value_heads": 20, "head_dim": 128, "rope_theta": 100000.0,
                   "rms_norm_eps": 1e-8})"},
    {"hyperclovax", R"({"max_position_embeddings": 2048})"},
    {"minicpm", R"({"max_position_embeddings": 2048})"},
    {"granite_swa", R"({"max_position_embeddings": 8192, "num_key_value_heads": 4, "rms_norm_eps": 1e-5,
                        "sliding_window": 128})"}};

constexpr auto kGraniteNames = kLlamaNames.with({
    {Role::attention_post_norm, "#post_norm1.weight"},
    {Role::feed_forward_post_norm, "#post_norm2.weight"},
    {Role::attention_sinks, "#self_attn.sinks"},
});

constexpr ModelType kMoeTypes[] = {
    {"granitemoe", R"({"max_position_embeddings": 2048, "num_experts_per_tok": 2})"},
    {"granitemoeshared", R"({"max_position_embeddings": 2048, "num_experts_per_tok": 2})"},
    {"granitemoehybrid",
     R"({"max_position_embeddings": 2048, "num_local_experts": 8, "num_experts_per_tok": 2,
         "shared_intermediate_size": 1024, "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256,
         "mamba_d_conv": 4, "mamba_expand": 2})"}};

constexpr ModelType kMoeSwaTypes[] = {
    {"granitemoe_swa", R"({"max_position_embeddings": 2048, "num_experts_per_tok": 2, "sliding_window": 128})"}};

/// The feed-forward part of layers without experts is the shared one.
constexpr auto kMoeNames = kLlamaNames.with({
    {Role::router, "#block_sparse_moe.router.layer.weight"},
    {Role::expert_up, "#block_sparse_moe.input_linear.weight", Within::fused},
    {Role::expert_down, "#block_sparse_moe.output_linear.weight", Within::fused},
    {Role::shared_up, "#shared_mlp.input_linear.weight", Within::stacked},
    {Role::shared_down, "#shared_mlp.output_linear.weight"},
    {Role::up, "#shared_mlp.input_linear.weight", Within::stacked},
    {Role::down, "#shared_mlp.output_linear.weight"},
    {Role::recurrent_norm, "#input_layernorm.weight"},
    FOVEA_MAMBA2_NAMES("#mamba"),
});

constexpr auto kMoeSwaNames = kMoeNames.with({
    {Role::attention_sinks, "#self_attn.sinks"},
    {Role::router, "#block_sparse_moe.router.weight"},
    {Role::expert_up, "#block_sparse_moe.experts.gate_up_proj", Within::fused},
    {Role::expert_down, "#block_sparse_moe.experts.down_proj", Within::fused},
});

void read_multipliers(const Fields& fields, bool divides_logits, Stack& stack, Block& block) {
    const auto number = [&](const char* name) { return static_cast<float>(fields.number_or(name, -1e9, 1e9, 1.0)); };
    stack.embedding_scale = number("embedding_multiplier");
    const float logits = number("logits_scaling");
    if (logits == 0.0f) fields.refuse("logits_scaling", "other than 0");
    stack.logit_scale = divides_logits ? 1.0f / logits : logits;
    block.residual_scale = number("residual_multiplier");
    if (block.residual_scale == 0.0f) fields.refuse("residual_multiplier", "other than 0");
    if (block.residual_scale == 1.0f) block.residual_scale = 0.0f;
    block.attention.softmax_scale = number("attention_multiplier");
    if (block.attention.softmax_scale == 0.0f) fields.refuse("attention_multiplier", "other than 0");
}

/// MiniCPM's factors, two of which are shares of the model's depth and width. Its models with experts are another
/// architecture; those with sparse attention see less of a long text.
void read_minicpm_multipliers(const Fields& fields, Stack& stack, Block& block) {
    for (const char* name : {"num_experts", "sparse_config"}) refuse_present(fields, name);
    const auto number = [&](const char* name) { return static_cast<float>(fields.number_or(name, 1e-9, 1e9, 1.0)); };
    stack.embedding_scale = number("scale_emb");
    block.residual_scale = number("scale_depth") / std::sqrt(static_cast<float>(stack.n_layers));
    if (block.residual_scale == 1.0f) block.residual_scale = 0.0f;
    stack.logit_scale = number("dim_model_base") / static_cast<float>(stack.d_model);
}

/// SmolLM 3's: those without positions, and windows.
void settle_smollm3(const Fields& fields, const Block& block, std::vector<LayerShape>& layers) {
    const auto n_layers = static_cast<std::uint32_t>(layers.size());
    const std::vector<bool> is_rotated = read_rotated_layers(fields, n_layers);
    const bool has_window = fields.flag_or("use_sliding_window", false) && fields.has("sliding_window");
    std::vector<bool> windowed(n_layers, false);
    if (fields.has("layer_types"))
        windowed = read_sliding_layers(fields, n_layers);
    else if (has_window)
        for (std::uint32_t i = 0; i < n_layers; ++i) windowed[i] = !is_rotated[i];
    for (std::uint32_t i = 0; i < n_layers; ++i)
        if (!is_rotated[i]) layers[i] = {block, {}, {}};
    set_windows(fields, windowed, layers);
}

/// Granite SWA's: windows in all but every fourth, from the first on; a rotary base for each, 0 if a layer has no
/// positions.
void settle_granite_swa(const Fields& fields, const Block& block, std::vector<LayerShape>& layers) {
    const auto n_layers = static_cast<std::uint32_t>(layers.size());
    std::vector<bool> windowed(n_layers);
    for (std::uint32_t i = 0; i < n_layers; ++i) windowed[i] = i % 4 != 0;
    windowed = sliding_layers_or(fields, windowed);
    if (fields.has("layer_rope_theta")) {
        const SortedJson& bases = fields.json()["layer_rope_theta"];
        if (!bases.is_array() || bases.size() != n_layers)
            fields.refuse("layer_rope_theta", std::to_string(n_layers) + " numbers");
        for (std::uint32_t i = 0; i < n_layers; ++i) {
            const double base = bases[i].is_number() ? bases[i].get<double>() : -1.0;
            if (base != 0.0 && !(base >= 1.01 && base <= 1e30))
                fields.refuse("layer_rope_theta", "numbers of 0 or above 1");
            if (base == 0.0)
                layers[i] = {block, {}, {}};
            else
                layers[i].rope.base = base;
        }
    }
    set_windows(fields, windowed, layers);
}

void read_granite(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_ernie = type == "ernie4_5", is_helium = type == "helium", is_clova = type == "hyperclovax";
    const bool is_granite = type == "granite" || type == "granite_swa";
    Block block = read_gated(fields, {.default_epsilon = is_ernie ? 1e-5 : 1e-6},
                             type != "granite" && !is_helium && !is_clova, stack);
    if (is_granite || is_clova) read_multipliers(fields, is_granite, stack, block);
    if (type == "minicpm") read_minicpm_multipliers(fields, stack, block);
    if (is_clova && !fields.has("attention_multiplier")) block.attention.softmax_scale = 0.0f;
    if (is_clova && fields.flag_or("use_post_norm", true)) block.norm_place = NormPlace::both;
    block.attention.attention_sinks = type == "granite_swa";
    const bool bias = fields.flag_or(is_ernie ? "use_bias" : "attention_bias", false);
    block.attention.query_bias = block.attention.key_bias = block.attention.value_bias = bias;
    block.attention.output_bias = bias && !is_helium;
    block.feed.up_bias = block.feed.gate_bias = block.feed.down_bias =
        is_ernie ? bias : fields.flag_or("mlp_bias", false);

    const LayerShape rotated = is_ernie || is_helium ? with_adjacent_rope(fields, block) : with_rope(fields, block);
    std::vector<LayerShape> layers(stack.n_layers, rotated);
    if (type == "smollm3") settle_smollm3(fields, block, layers);
    if (type == "granite_swa") settle_granite_swa(fields, block, layers);
    set_layers(fields, layers, result);
}

void read_moe(const Fields& fields, const std::string& type, HfConfig& result) {
    constexpr std::uint32_t kMostWidth = 1u << 20;
    Stack& stack = result.stack();
    const bool is_hybrid = type == "granitemoehybrid";
    const bool has_experts = !is_hybrid || number_or(fields, "num_local_experts", 0, kMaxExperts) != 0;
    const char* const d_ff = has_experts ? "intermediate_size" : "shared_intermediate_size";
    Block block = read_gated(fields, {.d_ff = d_ff}, false, stack);
    read_multipliers(fields, true, stack, block);
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    if (has_experts) read_experts(fields, {.n_experts = "num_local_experts"}, true, block);
    if (has_experts && type != "granitemoe")
        block.experts.shared_d_ff = number_or(fields, "shared_intermediate_size", 0, kMostWidth);
    const std::string position = is_hybrid ? fields.text_or("position_embedding_type", "nope") : "rope";
    if (position != "rope" && position != "nope") fields.refuse("position_embedding_type", "rope or nope");
    block.attention.attention_sinks = type == "granitemoe_swa";
    const LayerShape attending = position == "rope" ? with_rope(fields, block) : LayerShape{block, {}, {}};
    std::vector<bool> recurs(stack.n_layers, is_hybrid);
    if (is_hybrid && (fields.has("layer_types") || fields.has("layers_block_type")))
        recurs = read_recurrent_layers(fields, "linear_attention", stack.n_layers);
    if (std::ranges::find(recurs, true) != recurs.end()) read_mamba2(fields, {}, result);
    std::vector<LayerShape> layers;
    for (const bool is_recurrent : recurs)
        layers.push_back(is_recurrent ? LayerShape{recurrent_block(block), {}, {}} : attending);
    if (type == "granitemoe_swa") settle_granite_swa(fields, block, layers);
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::granite_moe = {.types = kMoeTypes, .names = kMoeNames, .read = read_moe};

const Family families::granite_moe_swa = {.types = kMoeSwaTypes, .names = kMoeSwaNames, .read = read_moe};

const Family families::granite = {.types = kGraniteTypes, .names = kGraniteNames, .read = read_granite};

}  // namespace fovea
