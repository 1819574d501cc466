// Mixtral (Jiang et al. 2024): Mistral with experts, whose matrices are w1 (the gate), w3 (up) and w2 (down).
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kMixtralTypes[] = {
    {"mixtral",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
         "rope_theta": 1000000.0})"}};

constexpr auto kMixtralNames = kLlamaNames.with({
    {Role::router, "#block_sparse_moe.gate.weight"},
    {Role::expert_up, "#block_sparse_moe.experts.*.w3.weight", Within::alone, "#block_sparse_moe.experts.*.w1.weight"},
    {Role::expert_down, "#block_sparse_moe.experts.*.w2.weight"},
});

void read_mixtral(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    read_experts(fields, {.n_experts = "num_local_experts"}, true, block);
    LayerShape shape = with_rope(fields, block);
    if (read_windows_of_all(fields, stack.n_layers).front())
        shape.block.attention.window = fields.count("sliding_window");
    set_layers(fields, shape, result);
}

}  // namespace

const Family families::mixtral = {.types = kMixtralTypes, .names = kMixtralNames, .read = read_mixtral};

}  // namespace fovea
