#include "convert/moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#define FOVEA_INLINE inline __attribute__((always_inline))  // into a function that may use the CPU's instructions

namespace fovea {
namespace {

// Vectors of the language, of one width: narrower registers take several for one, with the same bits.
typedef float Floats __attribute__((vector_size(64)));
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

/// Four rows of the triangle and sixteen columns at a time; what is left, one by one.
FOVEA_INLINE void add_moments_by(const float* x, std::uint32_t n_rows, std::uint32_t n, float* lower) {
    for (std::uint32_t i = 0; i < n; i += kRows) {
        const std::uint32_t n_i = std::min(kRows, n - i);
        std::uint32_t j = 0;
        for (; n_i == kRows && j + kFloats <= i + 1; j += kFloats) {
            Floats sum[kRows] = {};
            for (std::uint32_t r = 0; r < n_rows; ++r) {
                const float* row = x + std::size_t{r} * n;
                const Floats column = load<Floats>(row + j);
                for (std::uint32_t k = 0; k < kRows; ++k) sum[k] += column * row[i + k];
            }
            for (std::uint32_t k = 0; k < kRows; ++k) {
                float* at = lower + row_at(i + k) + j;
                store(at, load<Floats>(at) + sum[k]);
            }
        }
        for (std::uint32_t k = 0; k < n_i; ++k)
            for (std::uint32_t col = j; col <= i + k; ++col) {
                float sum = 0;
                for (std::uint32_t r = 0; r < n_rows; ++r)
                    sum += x[std::size_t{r} * n + col] * x[std::size_t{r} * n + i + k];
                lower[row_at(i + k) + col] += sum;
            }
    }
}

/// Σ a[i]·b[i] in doubles: by lanes, which are then added in order.
FOVEA_INLINE double dot(const float* a, const float* b, std::uint32_t n) {
    typedef float Eight __attribute__((vector_size(32)));
    Doubles sums = {};
    std::uint32_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles)
        sums +=
            __builtin_convertvector(load<Eight>(a + i), Doubles) * __builtin_convertvector(load<Eight>(b + i), Doubles);
    double sum = 0;
    for (std::uint32_t lane = 0; lane < kDoubles; ++lane) sum += sums[lane];
    for (; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
}

/// Cholesky's rows from the first on (Golub and Van Loan 2013, section 4.2.5).
FOVEA_INLINE void factor_by(std::uint32_t n, float* lower) {
    double mean = 0;
    for (std::uint32_t i = 0; i < n; ++i) mean += lower[row_at(i) + i];
    mean = n && mean > 0 ? mean / n : 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        float* row = lower + row_at(i);
        for (std::uint32_t j = 0; j < i; ++j) {
            const float* of = lower + row_at(j);
            row[j] = static_cast<float>((row[j] - dot(row, of, j)) / of[j]);
        }
        const double square = row[i] + kDamping * mean - dot(row, row, i);
        const double least = 1e-6 * mean;  // rounding may leave less of the damping, or nothing
        row[i] = static_cast<float>(mean > 0 ? std::sqrt(std::max(square, least)) : 1.0);
    }
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

FOVEA_INLINE void dot_row_by(const float* lower, std::uint32_t k, const float* x, float* out) {
    const float* row = lower + row_at(k);
    Floats part[kRows] = {};
    std::uint32_t j = 0;
    for (; j + kRows <= k + 1; j += kRows)
        for (std::uint32_t i = 0; i < kRows; ++i) part[i] += load<Floats>(x + (j + i) * kFloats) * row[j + i];
    for (; j <= k; ++j) part[j % kRows] += load<Floats>(x + j * kFloats) * row[j];
    store(out, (part[0] + part[1]) + (part[2] + part[3]));
}

#define FOVEA_FUNCTIONS(isa, attributes)                                                                             \
    attributes void add_moments_##isa(const float* x, std::uint32_t n_rows, std::uint32_t n, float* lower) {         \
        add_moments_by(x, n_rows, n, lower);                                                                         \
    }                                                                                                                \
    attributes void factor_##isa(std::uint32_t n, float* lower) { factor_by(n, lower); }                             \
    attributes void add_errors_##isa(const float* lower, std::uint32_t begin, std::uint32_t end, const float* error, \
                                     float* sums) {                                                                  \
        add_errors_by(lower, begin, end, error, sums);                                                               \
    }                                                                                                                \
    attributes void dot_row_##isa(const float* lower, std::uint32_t k, const float* x, float* out) {                 \
        dot_row_by(lower, k, x, out);                                                                                \
    }

#if defined(__x86_64__)
FOVEA_FUNCTIONS(avx512, __attribute__((target("avx512f"))))
FOVEA_FUNCTIONS(avx2, __attribute__((target("avx2"))))
#endif
FOVEA_FUNCTIONS(baseline, )

constexpr MomentFunctions kFunctions[] = {
#if defined(__x86_64__)
    {"avx512", add_moments_avx512, factor_avx512, add_errors_avx512, dot_row_avx512},
    {"avx2", add_moments_avx2, factor_avx2, add_errors_avx2, dot_row_avx2},
#endif
    {"baseline", add_moments_baseline, factor_baseline, add_errors_baseline, dot_row_baseline},
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
