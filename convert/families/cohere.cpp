// Command R (Cohere 2024) and its second generation: attention and feed-forward in parallel behind one LayerNorm, adjacent
// dims turned; the second has windows, and no positions in full layers. It may have experts.
#include <algorithm>

#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kCohereTypes[] = {{"cohere", R"({"max_position_embeddings": 8192, "rope_theta": 500000.0})"},
                                      {"cohere2", R"({"max_position_embeddings": 8192, "sliding_window": 4096})"}};

constexpr ModelType kCohereMoeTypes[] = {
    {"cohere2_moe",
     R"({"max_position_embeddings": 8192, "sliding_window": 4096, "head_dim": 128, "num_experts": 8,
         "num_experts_per_tok": 2, "norm_topk_prob": true})"}};

/// What all have.
Block read_block(const Fields& fields, const char* epsilon, Norm norm, Stack& stack) {
    Block block = read_sizes(fields, {.epsilon = epsilon, .default_epsilon = 1e-5}, norm, stack);
    read_output_head(fields, true, stack);
    stack.final_norm_bias = block.norm_bias = false;
    stack.logit_scale = static_cast<float>(fields.number_or("logit_scale", -1e9, 1e9, 0.0625));
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.feed.gated = block.feed.parallel = block.feed.shared_norm = true;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    return block;
}

void read_cohere(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_block(fields, "layer_norm_eps", Norm::layer, stack);
    if (fields.flag_or("use_qk_norm", false)) {
        block.attention.query_key_norm = Norm::layer;
        block.attention.head_norm = HeadNorm::each;
    }
    const LayerShape rotated = with_adjacent_rope(fields, block);
    std::vector<LayerShape> layers(stack.n_layers, rotated);
    if (type == "cohere2") {
        const std::uint32_t period = fields.count_or("sliding_window_pattern", 4);
        const std::vector<bool> windowed = sliding_layers_or(fields, all_but_every(period, stack.n_layers));
        for (std::uint32_t i = 0; i < stack.n_layers; ++i)
            if (!windowed[i]) layers[i] = {block};
        set_windows(fields, windowed, layers);
    }
    set_layers(fields, layers, result);
}

/// Windows of layers with experts, and of those before them.
std::vector<bool> windowed_layers(const Fields& fields, std::uint32_t n_layers) {
    const std::uint32_t n_dense = std::min(number_or(fields, "first_k_dense_replace", 0, kMaxLayers), n_layers);
    std::vector<bool> windowed = all_but_every(fields.count_or("prefix_dense_sliding_window_pattern", 1), n_dense);
    const std::vector<bool> others = all_but_every(fields.count_or("sliding_window_pattern", 4), n_layers - n_dense);
    windowed.insert(windowed.end(), others.begin(), others.end());
    return sliding_layers_or(fields, windowed);
}

/// Experts, of which a softmax or sigmoids choose. Where the shared expert and the others are averaged, it has a gate of zeros,
/// whose sigmoid is a half.
Block with_experts(const Fields& fields, Block block, HfConfig& result) {
    read_experts(fields, {}, false, block);
    const std::string scores = fields.text_or("expert_selection_fn", "softmax");
    if (scores != "softmax" && scores != "sigmoid") fields.refuse("expert_selection_fn", "softmax or sigmoid");
    if (scores == "sigmoid")
        block.experts.router_score = RouterScore::sigmoid;
    else
        block.experts.normalize = true;
    constexpr std::uint32_t kMostShared = 1u << 10;
    block.experts.shared_d_ff = number_or(fields, "num_shared_experts", 0, kMostShared) * block.feed.d_ff;
    const std::string joined = fields.text_or("shared_expert_combination_strategy", "average");
    if (joined != "average" && joined != "sum") fields.refuse("shared_expert_combination_strategy", "average or sum");
    if (!block.experts.shared_d_ff || joined == "sum") return block;
    block.experts.routed_scale = 0.5f;
    block.experts.shared_gate = true;
    for (std::uint32_t i = 0; i < result.stack().n_layers; ++i) result.names[{Role::shared_gate, i}] = "";
    return block;
}

void read_cohere_moe(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const bool has_rms = fields.has("rms_norm_eps");
    const Block block = has_rms ? read_block(fields, "rms_norm_eps", Norm::rms, stack)
                                : read_block(fields, "layer_norm_eps", Norm::layer, stack);
    const std::vector<bool> windowed = windowed_layers(fields, stack.n_layers),
                            sparse = read_layers_with_experts(fields, stack.n_layers);
    const bool dense_turn = fields.count_or("prefix_dense_sliding_window_pattern", 1) == 1;
    Block dense = block;
    if (std::ranges::count(sparse, false)) dense.feed.d_ff = fields.count("prefix_dense_intermediate_size");
    const Block experts = with_experts(fields, block, result);
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        const Block& own = sparse[i] ? experts : dense;
        const bool turns = windowed[i] || (!sparse[i] && dense_turn);
        layers.push_back(turns ? with_adjacent_rope(fields, own) : LayerShape{own, {}, {}});
    }
    set_windows(fields, windowed, layers);
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::cohere_moe = {.types = kCohereMoeTypes, .names = kSharedExpertNames, .read = read_cohere_moe};

const Family families::cohere = {.types = kCohereTypes, .names = kLlamaNames, .read = read_cohere};

}  // namespace fovea
