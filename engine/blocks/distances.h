// Disentangled attention (He et al. 2021, equation 4): a score is the product of query and key, plus what the query says of
// the distance to the key, plus what the key says of it.
#pragma once
#include "engine/blocks/attention_task.h"

namespace fovea {

struct Distances {
    /// Makes what is added to a task's scores, [n_rows][n_keys] at DistanceRows::scores of the member's scratch: for each query and
    /// key the query's product with its head's vector for their distance in distance_keys, plus the key's in distance_queries.
    static void score(const Attention& a, const Task& task) noexcept;
};

}  // namespace fovea
