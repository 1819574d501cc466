// How DeepSeek 3 chooses experts (DeepSeek-AI 2024), and what came after it: by sigmoids and a learned bias, maybe among a few
// groups of experts, with experts beside them that every row has. The first layers have no experts.
#pragma once
#include <vector>

#include "convert/families/reading.h"

namespace fovea {

/// What config.json calls how many experts there are, and how many are shared; null: none are.
struct RoutingNames {
    const char* n_experts = "n_routed_experts";
    const char* n_shared = "n_shared_experts";
    const char* scale = "routed_scaling_factor";
};

/// Puts experts of moe_intermediate_size into a block whose d_ff is that of a part without; shared ones are one as wide as all.
/// Where no field says how rows choose, `score` does.
void read_routing(const Fields& fields, const RoutingNames& names, RouterScore score, Block& block);
/// Only experts of a few groups are chosen.
void read_expert_groups(const Fields& fields, const RoutingNames& names, Block& block);

/// Layers with experts: those that mlp_layer_types calls sparse, or without it all but the first first_k_dense_replace.
[[nodiscard]] std::vector<bool> read_layers_with_experts(const Fields& fields, std::uint32_t n_layers);

/// Layers of the one block or the other.
[[nodiscard]] std::vector<LayerShape> with_experts_in(const std::vector<bool>& sparse, const LayerShape& dense,
                                                      const LayerShape& experts);

/// A number that may be 0, or there may be none.
[[nodiscard]] std::uint32_t number_or(const Fields& fields, const char* name, std::uint32_t otherwise,
                                      std::uint32_t most);

}  // namespace fovea
