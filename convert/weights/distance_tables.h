// Disentangled attention's tables (He et al. 2021): sources have a vector for each bucket of distances, which every layer projects
// for itself; a Fovea file has what each head makes of them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convert/weights/mapped_weights.h"

namespace fovea {

/// The bucket of each distance. There are 2·span buckets: number span is for the query's own position, greater ones are
/// for keys before it.
struct DistanceBuckets {
    std::uint32_t span = 0;
    /// Element i is for keys i − max_distance positions after the query; further ones have the first or the last.
    std::vector<float> of = {};
};

/// One bucket for each distance below `span`.
[[nodiscard]] DistanceBuckets plain_buckets(std::uint32_t span);

/// A bucket for each distance up to span/2, further ones by logarithm up to max_position, in PyTorch's float32 steps. `span` is
/// at least 4, max_position above span/2 + 1.
[[nodiscard]] DistanceBuckets log_buckets(std::uint32_t span, std::uint32_t max_position);

/// What a family's reader says of its tables.
struct DistanceTables {
    DistanceBuckets buckets = {};
    std::string table = {};            ///< tensor [2·span, d_model]
    std::string norm = {};             ///< module of its layer norm; empty: none
    bool keys = true, queries = true;  ///< whether scores get what queries, and what keys say of distances; else zeros
};

/// Views a source's tensor by its name in a family's list: of so many rows and columns or, of one column, a vector.
using ViewTensor = std::function<TensorView(const std::string& name, std::uint32_t n_rows, std::uint32_t n_cols)>;

/// What Role::distance_keys or distance_queries holds, rows and padding: each head's projection of the table by `module`'s weight
/// and bias, times what the block multiplies scores by.
[[nodiscard]] std::vector<float> distance_vectors(const DistanceTables& tables, const Stack& stack,
                                                  const TensorSpec& spec, const std::string& module,
                                                  const ViewTensor& view);

}  // namespace fovea
