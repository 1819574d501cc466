// Command R (Cohere 2024) and its second generation: attention and feed-forward in parallel behind one LayerNorm, adjacent
// dims turned; the second has windows, and no positions in full layers.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kCohereTypes[] = {{"cohere", R"({"max_position_embeddings": 8192, "rope_theta": 500000.0})"},
                                      {"cohere2", R"({"max_position_embeddings": 8192, "sliding_window": 4096})"}};

void read_cohere(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.epsilon = "layer_norm_eps", .default_epsilon = 1e-5}, Norm::layer, stack);
    read_output_head(fields, true, stack);
    stack.final_norm_bias = block.norm_bias = false;
    stack.logit_scale = static_cast<float>(fields.number_or("logit_scale", -1e9, 1e9, 0.0625));
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.feed.gated = block.feed.parallel = block.feed.shared_norm = true;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
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

}  // namespace

const Family families::cohere = {.types = kCohereTypes, .names = kLlamaNames, .read = read_cohere};

}  // namespace fovea
