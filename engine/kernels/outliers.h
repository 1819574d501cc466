// Outlier columns of rows on their way into an operand: see Matmul::n_outliers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/kernels/kernels.h"

namespace fovea {

/// Outlier columns among n, whose scales may be null.
[[nodiscard]] inline std::uint32_t n_zeros(const float* scales, std::uint32_t n) noexcept {
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; scales && i < n; ++i) found += scales[i] == 0.0f;
    return found;
}

/// out[row][i] = x[row·x_stride + col] for the first n columns of the n_cols whose scale is 0, in order.
inline void take_outliers(const float* columns, const float* x, std::size_t x_stride, std::uint32_t n_rows,
                          std::uint32_t n_cols, std::uint32_t n, float* out) noexcept {
    for (std::uint32_t begin = 0, found = 0; found < n && begin < n_cols; begin += kLanes) {
        const std::uint32_t end = begin + kLanes < n_cols ? begin + kLanes : n_cols;
        bool any = false;  // without a branch, so that compilers compare several at a time
        for (std::uint32_t col = begin; col < end; ++col) any |= columns[col] == 0.0f;
        for (std::uint32_t col = begin; any && col < end && found < n; ++col) {
            if (columns[col] != 0.0f) continue;
            for (std::uint32_t row = 0; row < n_rows; ++row)
                out[std::size_t{row} * n + found] = x[row * x_stride + col];
            ++found;
        }
    }
}

}  // namespace fovea
