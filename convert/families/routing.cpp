#include "convert/families/routing.h"

namespace fovea {

std::uint32_t number_or(const Fields& fields, const char* name, std::uint32_t otherwise, std::uint32_t most) {
    return fields.has(name) ? fields.count(name, 0, most) : otherwise;
}

void read_routing(const Fields& fields, const RoutingNames& names, RouterScore score, Block& block) {
    constexpr std::uint32_t kMostShared = 1u << 10;
    const bool sigmoid = score == RouterScore::sigmoid;
    read_experts(fields, {.n_experts = names.n_experts, .d_ff = "moe_intermediate_size"}, false, block);
    block.experts.router_score = score;
    block.experts.choice_bias = sigmoid;
    // dots1's files have the name of the method there.
    const std::string scores = fields.text_or("scoring_func", "");
    if (!scores.empty() && scores != (sigmoid ? "sigmoid" : "softmax") && !(sigmoid && scores == "noaux_tc"))
        fields.refuse("scoring_func", sigmoid ? "sigmoid" : "softmax");
    block.experts.routed_scale = static_cast<float>(fields.number_or(names.scale, -1e6, 1e6, 1.0));
    if (block.experts.routed_scale == 1.0f)
        block.experts.routed_scale = 0.0f;
    else if (block.experts.routed_scale == 0.0f)
        fields.refuse(names.scale, "other than 0");
    if (names.n_shared) block.experts.shared_d_ff = number_or(fields, names.n_shared, 0, kMostShared) * block.feed.d_ff;
}

void read_expert_groups(const Fields& fields, const RoutingNames& names, Block& block) {
    if (fields.text_or("topk_method", "noaux_tc") != "noaux_tc" && block.experts.choice_bias)
        fields.refuse("topk_method", "noaux_tc");
    block.experts.n_groups = static_cast<std::uint16_t>(fields.count("n_group", 1, block.experts.n));
    block.experts.n_groups_used = static_cast<std::uint16_t>(fields.count("topk_group", 1, block.experts.n_groups));
    if (block.experts.n % block.experts.n_groups)
        fields.refuse("n_group",
                      "a divisor of " + std::string(names.n_experts) + ", " + std::to_string(block.experts.n));
    if (block.experts.n_groups_used == block.experts.n_groups) block.experts.n_groups = block.experts.n_groups_used = 0;
}

std::vector<bool> read_layers_with_experts(const Fields& fields, std::uint32_t n_layers) {
    if (fields.has("mlp_layer_types")) return read_layer_words(fields, "mlp_layer_types", "dense", "sparse", n_layers);
    const std::uint32_t n_dense = number_or(fields, "first_k_dense_replace", 0, kMaxLayers);
    std::vector<bool> sparse(n_layers);
    for (std::uint32_t i = n_dense; i < n_layers; ++i) sparse[i] = true;
    return sparse;
}

std::vector<LayerShape> with_experts_in(const std::vector<bool>& sparse, const LayerShape& dense,
                                        const LayerShape& experts) {
    std::vector<LayerShape> layers;
    for (const bool has_experts : sparse) layers.push_back(has_experts ? experts : dense);
    return layers;
}

}  // namespace fovea
