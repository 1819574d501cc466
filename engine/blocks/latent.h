// Latent attention as phases of a pass: what stands in the place of projections, and of the merged heads.
#pragma once
#include "engine/blocks/attention.h"

namespace fovea {

/// Queries, and the keys that are values too, of every row, side by side in `projected`, but for the queries' dims that turn.
void project_latent(const Attention& a, const Input& input) noexcept;

/// Of a head of `projected`: a query's dims that turn, from where project_latent left them; a key's norm.
void take_turning(const Attention& a, std::uint32_t row, std::uint32_t number, float* head) noexcept;
void norm_latent(const Attention& a, float* head) noexcept;

/// Each head's map of what it attended to: rows of merged heads.
[[nodiscard]] Rows map_latent_values(Pass& pass, const Block& block) noexcept;

}  // namespace fovea
