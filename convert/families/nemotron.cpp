// Nemotron and Minitron (Parmar et al. 2024): layer norms whose weights are stored less one, squared ReLU without a gate,
// rotary positions on a part of each head.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kNemotronTypes[] = {{"nemotron", R"({"max_position_embeddings": 4096})"}};

void read_nemotron(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.epsilon = "norm_eps", .default_epsilon = 1e-5}, Norm::layer, stack);
    read_output_head(fields, false, stack);
    block.feed.activation = read_activation(fields, "hidden_act", "relu2");
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    block.feed.up_bias = block.feed.down_bias = fields.flag_or("mlp_bias", false);
    const LayerShape layer = with_rope(fields, block, nullptr, 0.5);
    set_layers(fields, layer, result);
}

}  // namespace

const Family families::nemotron = {
    .types = kNemotronTypes, .names = kLlamaNames, .read = read_nemotron, .norms_less_one = true};

}  // namespace fovea
