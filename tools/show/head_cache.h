// One head's keys and values as a cache of some type holds them, and what kernels make of those.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/kernels/kernels.h"

namespace fovea {

/// Columns of some rows, as a matrix that kernels multiply with.
struct PanelMatrix {
    const std::byte* data = nullptr;
    std::uint64_t stride = 0;
    Type type = Type::f32;
    std::uint32_t n_rows = 0, n_cols = 0;
    const float* columns = nullptr;  ///< what is multiplied has column scales; may be null
};

/// [n, matrix.n_rows] = x · matrixᵀ + bias
[[nodiscard]] std::vector<float> multiply(const Kernels& kernels, const PanelMatrix& matrix, const float* x,
                                          std::uint64_t n, const float* bias, bool canonical = false);

/// The sum of [kLanes] numbers, folded as the kernels add; changes them.
[[nodiscard]] float folded(float* lanes);

/// Values as the cache holds them: numbers [n_keys, dim], and what multiplies every 32 of a row.
struct CachedValues {
    std::uint32_t dim = 0;
    std::vector<float> numbers, scales;
};

class HeadCache {
public:
    HeadCache(const Kernels& kernels, Type type, std::uint32_t n_keys)
        : kernels_(kernels), type_(type), n_keys_(n_keys) {}

    /// [n_queries, n_keys]: queries [n_queries, dim] times keys [n_keys, dim].
    [[nodiscard]] std::vector<float> scores(const float* queries, std::uint32_t n_queries, const float* keys,
                                            std::uint32_t dim) const;
    /// Out of [n_keys, dim].
    [[nodiscard]] CachedValues values(const float* given, std::uint32_t dim) const;
    /// p · values [dim] for one query, over the keys that it sees: others' values may be anything.
    [[nodiscard]] std::vector<float> weighed(const float* p, const CachedValues& values) const;

private:
    [[nodiscard]] float times_reference(const float* query, const std::byte* panel, std::uint32_t dim) const;

    const Kernels& kernels_;
    const Type type_;
    const std::uint32_t n_keys_;
};

}  // namespace fovea
