// Tables of relative positions (Raffel et al. 2020, section 2.1): sources have a row for each bucket of distances, a Fovea file
// one for each distance.
#pragma once
#include <cstdint>
#include <vector>

#include "convert/weights/mapped_weights.h"

namespace fovea {

/// The rows [2·max_distance + 1, n_heads] of Role::relative_bias. `buckets` has n_buckets rows of n_heads floats, n_buckets a
/// multiple of 4 below 4·max_distance: half of them for keys after the query or, where queries see none of those (`causal`), all
/// for keys before it; then n_buckets is below 2·max_distance. The steps are PyTorch's, in float32.
[[nodiscard]] std::vector<float> relative_bias_rows(const TensorView& buckets, std::uint32_t n_buckets, bool causal,
                                                    std::uint32_t max_distance, std::uint32_t n_heads);

}  // namespace fovea
