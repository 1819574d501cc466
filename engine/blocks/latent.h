// Latent attention as phases of a pass: what stands in the place of projections, and of the merged heads.
#pragma once
#include "engine/blocks/attention.h"

namespace fovea {

struct Latent {
    /// Queries, and the keys that are values too, of every row, side by side in `projected`, but for the queries' dims that
    /// turn.
    static void project(const Attention& a, const Input& input) noexcept;

    /// A head of `projected`: take_turning moves a query's dims that turn from where project left them; norm is a key's.
    static void take_turning(const Attention& a, std::uint32_t row, std::uint32_t number, float* head) noexcept;
    static void norm(const Attention& a, float* head) noexcept;

    /// Each head's map of what it attended to: rows of merged heads.
    [[nodiscard]] static Rows map_values(Pass& pass, const Block& block) noexcept;
};

}  // namespace fovea
