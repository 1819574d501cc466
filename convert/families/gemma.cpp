// Gemma (Gemma Team 2024): norms' weights are stored less one, embeddings are scaled. Gemma 2 has norms on both sides of
// each part, caps and windows; Gemma 3 norms queries and keys and has a rotary base for its windows. EmbeddingGemma (Schechter
// Vera et al. 2025) is Gemma 3 as an encoder: its queries see what follows them too. VaultGemma (Sinha et al. 2025) is Gemma 2
// without the norms behind its parts.
#include <cmath>

#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGemma[] = {
    {"gemma", R"({"max_position_embeddings": 8192, "num_key_value_heads": 16, "head_dim": 256})"}};
constexpr ModelType kGemma2[] = {
    {"gemma2",
     R"({"max_position_embeddings": 8192, "sliding_window": 4096, "num_key_value_heads": 4, "head_dim": 256})"},
    {"gemma3_text",
     R"({"max_position_embeddings": 131072, "sliding_window": 4096, "num_key_value_heads": 4, "head_dim": 256,
         "rope_theta": 1000000.0})"}};
constexpr ModelType kVaultGemma[] = {
    {"vaultgemma",
     R"({"max_position_embeddings": 8192, "sliding_window": 4096, "num_key_value_heads": 4, "head_dim": 256})"}};

constexpr auto kGemma2Names = kLlamaNames.with({
    {Role::attention_post_norm, "#post_attention_layernorm.weight"},
    {Role::feed_forward_norm, "#pre_feedforward_layernorm.weight"},
    {Role::feed_forward_post_norm, "#post_feedforward_layernorm.weight"},
});

constexpr auto kVaultGemmaNames = kLlamaNames.with({
    {Role::feed_forward_norm, "#pre_feedforward_layernorm.weight"},
});

Block read_block(const Fields& fields, const char* activation, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    block.attention.causal = result.family->stack == StackIndex::decoder;
    if (block.attention.causal) {
        refuse_true(fields, "use_bidirectional_attention");
        read_output_head(fields, true, stack);
    }
    stack.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(stack.d_model)));
    block.feed.activation = read_activation(fields, activation, "gelu_pytorch_tanh");
    block.feed.gated = true;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    return block;
}

void read_gemma(const Fields& fields, const std::string&, HfConfig& result) {
    // Older files have the exact GELU in `hidden_act`, which the library computes as the other one.
    Block block = read_block(fields, "hidden_activation", result);
    if (!fields.has("hidden_activation") && fields.text_or("hidden_act", "gelu") != "gelu")
        block.feed.activation = read_activation(fields, "hidden_act", "gelu_pytorch_tanh");
    set_layers(fields, with_rope(fields, block), result);
}

/// Gemma 2 alternates windows and full layers if no field says which; Gemma 3 has one full layer in so many.
std::vector<bool> gemma_windows(const Fields& fields, bool is_third, std::uint32_t n_layers) {
    if (fields.has("layer_types")) return read_sliding_layers(fields, n_layers);
    return all_but_every(is_third ? fields.count_or("sliding_window_pattern", 6) : 2, n_layers);
}

void read_gemma2(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    const bool is_third = type == "gemma3_text";
    Block block = read_block(fields, "hidden_activation", result);
    block.norm_place = type == "vaultgemma" ? NormPlace::pre : NormPlace::both;
    block.attention.query_key_norm = is_third ? Norm::rms : Norm::none;
    const double scalar = fields.number_or("query_pre_attn_scalar", 1e-6, 1e9, 256.0);
    if (scalar != block.attention.head_dim) block.attention.softmax_scale = static_cast<float>(1.0 / std::sqrt(scalar));
    // The third computes without a cap of its scores, whatever the field says.
    if (is_third && fields.has("attn_logit_softcapping")) fields.refuse("attn_logit_softcapping", "null");
    block.attention.score_softcap = is_third ? 0.0f : read_softcap(fields, "attn_logit_softcapping", 50.0);
    stack.logit_softcap = read_softcap(fields, "final_logit_softcapping", is_third ? 0.0 : 30.0);

    const std::vector<bool> windowed = gemma_windows(fields, is_third, stack.n_layers);
    std::vector<LayerShape> layers;
    for (const bool has_window : windowed) {
        LayerShape layer = with_rope(fields, block, has_window ? "sliding_attention" : "full_attention");
        // Before settings by kind of layer, the windows' base had a field of its own, and no scaling.
        const Fields kinds = fields.has("rope_parameters") ? fields.object("rope_parameters") : Fields({}, "");
        if (is_third && has_window && !kinds.has("sliding_attention")) {
            layer.rope = {};
            layer.block.attention.rope_scale = 1.0f;
        }
        if (is_third && has_window &&
            !(kinds.has("sliding_attention") && kinds.object("sliding_attention").has("rope_theta")))
            layer.rope.base = fields.number_or("rope_local_base_freq", 1.01, 1e30, 10000.0);
        if (has_window) layer.block.attention.window = fields.count("sliding_window");
        // Half of the field's positions lie on each side.
        if (has_window && !block.attention.causal) layer.block.attention.window = layer.block.attention.window / 2 + 1;
        layers.push_back(layer);
    }
    set_layers(fields, layers, result);
}

const Family* gemma3_or_encoder(const Fields& fields) {
    if (fields.text("model_type") != "gemma3_text") return nullptr;
    return fields.flag_or("use_bidirectional_attention", false) ? &families::gemma_embedding : nullptr;
}

}  // namespace

const Family families::gemma = {.types = kGemma, .names = kLlamaNames, .read = read_gemma, .norms_less_one = true};
const Family families::gemma2 = {
    .types = kGemma2, .names = kGemma2Names, .read = read_gemma2, .norms_less_one = true, .variant = gemma3_or_encoder};
const Family families::vaultgemma = {
    .types = kVaultGemma, .names = kVaultGemmaNames, .read = read_gemma2, .norms_less_one = true};
/// Its type is "gemma3_text" too: gemma2's `variant` chooses it.
const Family families::gemma_embedding = {
    .types = {}, .names = kGemma2Names, .read = read_gemma2, .stack = StackIndex::encoder, .norms_less_one = true};

}  // namespace fovea
