// Sums of outer products, their Cholesky factors, and their products: calibration spends its time here. Every sum has
// one order, whatever vectors the CPU has, so all give the same bits.
#pragma once
#include <cstdint>
#include <span>

namespace fovea {

/// For one width of vectors. `lower` is a symmetric matrix's lower triangle or a factor, row after row: [n·(n + 1)/2].
struct MomentFunctions {
    const char* isa;

    /// lower += Xᵀ·X. x [n_rows][n].
    void (*add_moments)(const float* x, std::uint32_t n_rows, std::uint32_t n, float* lower);

    /// lower becomes L with L·Lᵀ = lower + damping, a hundredth of the diagonal's mean: directions that no input had count a
    /// little, and L exists. A matrix of zeros becomes that of ones on the diagonal.
    void (*factor)(std::uint32_t n, float* lower);

    /// sums[j][lane] += Σ over k from end − 1 down to begin of L[k][j]·error[k − begin][lane], for all j < begin. The
    /// lanes are a panel's sixteen rows: error [end − begin][16], sums [begin][16].
    void (*add_errors)(const float* lower, std::uint32_t begin, std::uint32_t end, const float* error, float* sums);

    /// sums[lane] += Σ over k from 0 on of column[k]·error[k][lane], in doubles. column [n], error [n][16], sums [16].
    void (*add_column)(const float* column, std::uint32_t n, const float* error, double* sums);

    /// out[lane] = Σ over j ≤ k of L[k][j]·x[j][lane], in four parts: j mod 4. x [k + 1][16], out [16].
    void (*dot_row)(const float* lower, std::uint32_t k, const float* x, float* out);
};

/// The tables that this CPU can run, the fastest first. All give the same bits.
[[nodiscard]] std::span<const MomentFunctions> moment_functions() noexcept;

}  // namespace fovea
