// ERNIE 4.5 with experts (Baidu 2025): chosen by probabilities and a learned bias, shared ones beside them, first layers without;
// adjacent dims turn.
#include "convert/families/llama_names.h"
#include "convert/families/routing.h"

namespace fovea {
namespace {

constexpr ModelType kErnieMoeTypes[] = {
    {"ernie4_5_moe",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 4, "rope_theta": 500000.0, "moe_num_experts": 64,
         "moe_k": 6, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
         "moe_layer_end_index": -1, "moe_layer_interval": 1, "moe_norm_min": 1e-12})"}};

constexpr auto kErnieMoeNames = kSharedExpertNames.with({
    {Role::choice_bias, "#mlp.moe_statics.e_score_correction_bias"},
});

/// From the first to the last one with experts, and of those every n-th; a last one of -1 is the model's.
std::vector<bool> sparse_layers(const Fields& fields, std::uint32_t n_layers) {
    const std::uint32_t first = fields.count("moe_layer_start_index", 0), interval = fields.count("moe_layer_interval");
    const bool to_end = fields.has("moe_layer_end_index") && fields.json()["moe_layer_end_index"] == -1;
    const std::uint32_t last = to_end ? n_layers : fields.count("moe_layer_end_index", 0);
    std::vector<bool> sparse(n_layers);
    for (std::uint32_t i = 0; i < n_layers; ++i) sparse[i] = i >= first && i <= last && (i + 1) % interval == 0;
    return sparse;
}

void read_ernie_choice(const Fields& fields, Block& block) {
    constexpr std::uint32_t kMostWidth = 1u << 20, kMostShared = 1u << 10;
    for (const auto& [name, form] : {std::pair{"moe_gate", "topk"}, std::pair{"moe_gate_act", "softmax"}})
        if (fields.text_or(name, form) != form) fields.refuse(name, form);
    // Least divisor of a sum of probabilities: the engine divides by less.
    if (fields.number("moe_norm_min", 0.0, 1.0) > 1e-12) fields.refuse("moe_norm_min", "at most 1e-12");
    block.experts.n = static_cast<std::uint16_t>(fields.count("moe_num_experts", 1, kMaxExperts));
    block.experts.n_used =
        static_cast<std::uint8_t>(fields.count("moe_k", 1, std::min<std::uint32_t>(block.experts.n, kMaxExpertsUsed)));
    block.experts.normalize = block.experts.choice_bias = true;
    block.feed.d_ff = fields.count("moe_intermediate_size", 1, kMostWidth);
    block.experts.shared_d_ff = number_or(fields, "moe_num_shared_experts", 0, kMostShared) * block.feed.d_ff;
}

void read_ernie_moe(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, true, stack);
    refuse_true(fields, "use_bias");
    Block experts = block;
    read_ernie_choice(fields, experts);
    set_layers(fields,
               with_experts_in(sparse_layers(fields, stack.n_layers), with_adjacent_rope(fields, block),
                               with_adjacent_rope(fields, experts)),
               result);
}

/// Tensors that predict tokens behind the next.
bool is_of_ernie_further_tokens(std::string_view name) { return name.starts_with("model.mtp_"); }

}  // namespace

const Family families::ernie_moe = {
    .types = kErnieMoeTypes, .names = kErnieMoeNames, .read = read_ernie_moe, .ignores = is_of_ernie_further_tokens};

}  // namespace fovea
