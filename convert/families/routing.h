// The choice of experts in DeepSeek 3 (DeepSeek-AI 2024) and later models: by sigmoids and a learned bias, maybe among
// a few groups of experts, beside experts that every row uses. The first layers have no experts.
#pragma once
#include <vector>

#include "convert/families/reading.h"

namespace fovea {

/// config.json's names for the number of experts, and for the number of shared ones; null: none are.
struct RoutingNames {
    const char* n_experts = "n_routed_experts";
    const char* n_shared = "n_shared_experts";
    const char* scale = "routed_scaling_factor";
};

/// Puts experts of moe_intermediate_size into a block whose d_ff is that of a part without experts. Shared experts
/// become one, as wide as all together. If no field says how rows choose, `score` does.
void read_routing(const Fields& fields, const RoutingNames& names, RouterScore score, Block& block);
/// Only experts of a few groups are chosen.
void read_expert_groups(const Fields& fields, const RoutingNames& names, Block& block);

/// Layers with experts: those that mlp_layer_types calls sparse; without that field, all but the first
/// first_k_dense_replace.
[[nodiscard]] std::vector<bool> read_layers_with_experts(const Fields& fields, std::uint32_t n_layers);

/// Layers of the one block or the other.
[[nodiscard]] std::vector<LayerShape> with_experts_in(const std::vector<bool>& sparse, const LayerShape& dense,
                                                      const LayerShape& experts);

/// A number that may be 0 or missing.
[[nodiscard]] std::uint32_t number_or(const Fields& fields, const char* name, std::uint32_t otherwise,
                                      std::uint32_t most);

}  // namespace fovea
