#include "convert/quantize/moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#define FOVEA_INLINE inline __attribute__((always_inline))  // into a function that may use the CPU's instructions

namespace fovea {
namespace {

// Vectors of the language, of one width: narrower registers take several for one, with the same bits.
typedef float Floats __attribute__((vector_size(64)));
typedef float Eight __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(64)));
constexpr std::uint32_t kFloats = 16, kDoubles = 8, kRows = 4;
constexpr double kDamping = 0.01;  // of 0.001 to 0.1 all lose the same, within the noise, where it was measured

template<class V, class Number>
FOVEA_INLINE V load(const Number* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template<class V, class Number>
FOVEA_INLINE void store(Number* p, const V& v) {
    std::memcpy(p, &v, sizeof v);
}

[[nodiscard]] FOVEA_INLINE std::size_t row_at(std::uint32_t i) { return std::size_t{i} * (i + 1) / 2; }

/// Adds to n_tile rows of the triangle from row i on, sixteen columns at a time.
template<std::uint32_t n_tile>
FOVEA_INLINE void add_tile(const float* x, std::uint32_t n_rows, std::uint32_t n, std::uint32_t i, float* lower) {
    for (std::uint32_t j = 0; j < i + n_tile; j += kFloats) {
        const std::uint32_t width = std::min(kFloats, n - j);
        Floats sum[n_tile] = {};
        for (std::uint32_t r = 0; r < n_rows; ++r) {
            const float *row = x + std::size_t{r} * n, *tile = row + i;
            Floats columns = {};
            if (width == kFloats)
                columns = load<Floats>(row + j);
            else
                std::memcpy(&columns, row + j, width * sizeof(float));
#pragma GCC unroll 12  // so that the sums stay in registers
            for (std::uint32_t k = 0; k < n_tile; ++k) sum[k] += columns * tile[k];
        }
#pragma GCC unroll 12
        for (std::uint32_t k = 0; k < n_tile; ++k) {
            float* at = lower + row_at(i + k) + j;
            if (j + kFloats <= i + k + 1) {
                store(at, load<Floats>(at) + sum[k]);
                continue;
            }
            float sums[kFloats];
            store(sums, sum[k]);
            for (std::uint32_t col = j; col <= i + k; ++col) at[col - j] += sums[col - j];
        }
    }
}

template<std::uint32_t n_tile>
FOVEA_INLINE void add_moments_by(const float* x, std::uint32_t n_rows, std::uint32_t n, float* lower) {
    std::uint32_t i = 0;
    for (; i + n_tile <= n; i += n_tile) add_tile<n_tile>(x, n_rows, n, i, lower);
    for (; i < n; ++i) add_tile<1>(x, n_rows, n, i, lower);
}

/// out[k] = Σ of rows[k][i]·b[i] in doubles, i < n: by lanes, which are then added in order.
template<std::uint32_t n_rows>
FOVEA_INLINE void dots(const float* const (&rows)[n_rows], const float* b, std::uint32_t n, double (&out)[n_rows]) {
    Doubles sums[n_rows] = {};
    std::uint32_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) {
        const Doubles of = __builtin_convertvector(load<Eight>(b + i), Doubles);
#pragma GCC unroll 4
        for (std::uint32_t k = 0; k < n_rows; ++k)
            sums[k] += __builtin_convertvector(load<Eight>(rows[k] + i), Doubles) * of;
    }
#pragma GCC unroll 4
    for (std::uint32_t k = 0; k < n_rows; ++k) {
        out[k] = 0;
        for (std::uint32_t lane = 0; lane < kDoubles; ++lane) out[k] += sums[k][lane];
        for (std::uint32_t at = i; at < n; ++at) out[k] += static_cast<double>(rows[k][at]) * b[at];
    }
}

/// Cholesky's rows from the first on, so many side by side (Golub and Van Loan 2013, section 4.2.5).
template<std::uint32_t n_rows>
FOVEA_INLINE void factor_rows(std::uint32_t first, double mean, float* lower) {
    float* rows[n_rows];
    const float* of_rows[n_rows];
    for (std::uint32_t k = 0; k < n_rows; ++k) of_rows[k] = rows[k] = lower + row_at(first + k);
    for (std::uint32_t j = 0; j < first; ++j) {
        const float* of = lower + row_at(j);
        double products[n_rows];
        dots(of_rows, of, j, products);
        for (std::uint32_t k = 0; k < n_rows; ++k) rows[k][j] = static_cast<float>((rows[k][j] - products[k]) / of[j]);
    }
    for (std::uint32_t k = 0; k < n_rows; ++k) {
        float* row = rows[k];
        const float* const alone[1] = {row};
        double product[1];
        for (std::uint32_t j = first; j < first + k; ++j) {
            dots(alone, lower + row_at(j), j, product);
            row[j] = static_cast<float>((row[j] - product[0]) / lower[row_at(j) + j]);
        }
        const std::uint32_t i = first + k;
        dots(alone, row, i, product);
        const double square = row[i] + kDamping * mean - product[0];
        const double least = 1e-6 * mean;  // rounding may leave less of the damping, or nothing
        row[i] = static_cast<float>(mean > 0 ? std::sqrt(std::max(square, least)) : 1.0);
    }
}

FOVEA_INLINE void factor_by(std::uint32_t n, float* lower) {
    double mean = 0;
    for (std::uint32_t i = 0; i < n; ++i) mean += lower[row_at(i) + i];
    mean = n && mean > 0 ? mean / n : 0;
    std::uint32_t i = 0;
    for (; i + kRows <= n; i += kRows) factor_rows<kRows>(i, mean, lower);
    for (; i < n; ++i) factor_rows<1>(i, mean, lower);
}

FOVEA_INLINE void add_errors_by(const float* lower, std::uint32_t begin, std::uint32_t end, const float* error,
                                float* sums) {
    for (std::uint32_t j = 0; j < begin; ++j) {
        Floats sum = load<Floats>(sums + j * kFloats);
        for (std::uint32_t k = end; k-- > begin;)
            sum += load<Floats>(error + (k - begin) * kFloats) * lower[row_at(k) + j];
        store(sums + j * kFloats, sum);
    }
}

FOVEA_INLINE void add_column_by(const float* column, std::uint32_t n, const float* error, double* sums) {
    Doubles low = load<Doubles>(sums), high = load<Doubles>(sums + kDoubles);
    for (std::uint32_t k = 0; k < n; ++k) {
        const double factor = column[k];
        low += __builtin_convertvector(load<Eight>(error + k * kFloats), Doubles) * factor;
        high += __builtin_convertvector(load<Eight>(error + k * kFloats + kDoubles), Doubles) * factor;
    }
    store(sums, low);
    store(sums + kDoubles, high);
}

FOVEA_INLINE void dot_row_by(const float* lower, std::uint32_t k, const float* x, float* out) {
    const float* row = lower + row_at(k);
    Floats part[kRows] = {};
    std::uint32_t j = 0;
    for (; j + kRows <= k + 1; j += kRows)
        for (std::uint32_t i = 0; i < kRows; ++i) part[i] += load<Floats>(x + (j + i) * kFloats) * row[j + i];
    for (; j <= k; ++j) part[j % kRows] += load<Floats>(x + j * kFloats) * row[j];
    store(out, (part[0] + part[1]) + (part[2] + part[3]));
}

#define FOVEA_FUNCTIONS(isa, attributes, n_tile)                                                                     \
    attributes void add_moments_##isa(const float* x, std::uint32_t n_rows, std::uint32_t n, float* lower) {         \
        add_moments_by<n_tile>(x, n_rows, n, lower);                                                                 \
    }                                                                                                                \
    attributes void factor_##isa(std::uint32_t n, float* lower) { factor_by(n, lower); }                             \
    attributes void add_errors_##isa(const float* lower, std::uint32_t begin, std::uint32_t end, const float* error, \
                                     float* sums) {                                                                  \
        add_errors_by(lower, begin, end, error, sums);                                                               \
    }                                                                                                                \
    attributes void add_column_##isa(const float* column, std::uint32_t n, const float* error, double* sums) {       \
        add_column_by(column, n, error, sums);                                                                       \
    }                                                                                                                \
    attributes void dot_row_##isa(const float* lower, std::uint32_t k, const float* x, float* out) {                 \
        dot_row_by(lower, k, x, out);                                                                                \
    }

#if defined(__x86_64__)
FOVEA_FUNCTIONS(avx512, __attribute__((target("avx512f"))), 12)
FOVEA_FUNCTIONS(avx2, __attribute__((target("avx2"))), 4)
#endif
FOVEA_FUNCTIONS(baseline, , 2)

constexpr MomentFunctions kFunctions[] = {
#if defined(__x86_64__)
    {"avx512", add_moments_avx512, factor_avx512, add_errors_avx512, add_column_avx512, dot_row_avx512},
    {"avx2", add_moments_avx2, factor_avx2, add_errors_avx2, add_column_avx2, dot_row_avx2},
#endif
    {"baseline", add_moments_baseline, factor_baseline, add_errors_baseline, add_column_baseline, dot_row_baseline},
};

}  // namespace

std::span<const MomentFunctions> moment_functions() noexcept {
    const std::span<const MomentFunctions> all(kFunctions);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return all;
    return all.subspan(__builtin_cpu_supports("avx2") ? 1 : 2);
#else
    return all;
#endif
}

}  // namespace fovea
