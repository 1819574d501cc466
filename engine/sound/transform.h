// The mathematics of make_frames in double: only sums, products and divisions, rounded one by one, which are the same
// on every machine. docs/numerics.md states the errors.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fovea {

/// Sequences that go through the transform side by side, each two real ones: the compiler makes vectors of them.
inline constexpr std::size_t kSideBySide = 4;

/// c[0] + c[1]·x + …, by Horner's rule.
template<std::size_t n>
[[nodiscard]] constexpr double series(double x, const double (&c)[n]) noexcept {
    double sum = c[n - 1];
    for (std::size_t i = 2; i <= n; ++i) sum = sum * x + c[n - i];
    return sum;
}

inline constexpr double kQuarterTurn = 1.57079632679489661923;
inline constexpr double kSine[] = {1.0,          -1.0 / 6,        1.0 / 120,        -1.0 / 5040,
                                   1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
inline constexpr double kCosine[] = {1.0,
                                     -1.0 / 2,
                                     1.0 / 24,
                                     -1.0 / 720,
                                     1.0 / 40320,
                                     -1.0 / 3628800,
                                     1.0 / 479001600,
                                     -1.0 / 87178291200,
                                     1.0 / 20922789888000};

struct Complex {
    double re, im;
};

/// exp(−2πi·k/n), 0 <= k < n: the angle's eighth of a turn is found in integers, so that the series (Taylor's, up to π/4,
/// an error below 1.2e-16) meets at the eighths, and quarter turns are exact.
[[nodiscard]] inline Complex unit_root(std::uint32_t k, std::uint32_t n) noexcept {
    const std::uint64_t quarters = std::uint64_t{4} * k;
    const auto quarter = static_cast<std::uint32_t>(quarters / n);
    const auto rest = static_cast<std::uint32_t>(quarters % n);
    const bool beyond = rest > n - rest;
    const double x = kQuarterTurn * static_cast<double>(beyond ? n - rest : rest) / static_cast<double>(n);
    const double s = x * series(x * x, kSine), c = series(x * x, kCosine);
    const double cosine = beyond ? s : c, sine = beyond ? c : s;
    switch (quarter & 3u) {
        case 0: return {cosine, -sine};
        case 1: return {-sine, -cosine};
        case 2: return {-cosine, sine};
        default: return {sine, cosine};
    }
}

/// log10(x) of a finite x >= 2^-1022: x = 2^e·m with m between √½ and √2, and log(m) = 2·artanh((m − 1)/(m + 1)).
[[nodiscard]] inline double log10_of(double x) noexcept {
    constexpr double kSeries[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9, 2.0 / 11,
                                  2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    constexpr double kLog10Of2 = 0.30102999566398119521, kLog10OfE = 0.43429448190325182765;
    constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1, kRootHalf = 0x3fe6a09e667f3bcd;
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t above = bits - kRootHalf;  // wraps below √½; its high bits are e, floored
    const auto e = static_cast<std::int32_t>(static_cast<std::int64_t>(above) >> 52);
    const double m = std::bit_cast<double>((above & kMantissa) + kRootHalf);
    const double s = (m - 1.0) / (m + 1.0);
    return static_cast<double>(e) * kLog10Of2 + s * series(s * s, kSeries) * kLog10OfE;
}

/// One step of Stockham's transform: parts of length `len` become `radix` times as many, shorter ones, `stride` apart.
/// Element i of lane l stands at [i·kSideBySide + l]. roots [n]: exp(−2πi·k/n).
struct TransformStep {
    std::uint32_t n, len, radix;
};
inline void transform_step(const TransformStep& step, const Complex* roots, const double* re, const double* im,
                           double* out_re, double* out_im) noexcept {
    const std::uint32_t m = step.len / step.radix, stride = step.n / step.len;
    for (std::uint32_t p = 0; p < m; ++p)
        for (std::uint32_t k = 0; k < step.radix; ++k)
            for (std::uint32_t q = 0; q < stride; ++q) {
                double sum_re[kSideBySide] = {}, sum_im[kSideBySide] = {};
                std::uint32_t root = p * k * stride;  // below n, for p < m and k < radix
                for (std::uint32_t j = 0; j < step.radix; ++j) {
                    const Complex w = roots[root];
                    const std::size_t from = (q + std::size_t{stride} * (p + std::size_t{m} * j)) * kSideBySide;
                    for (std::size_t l = 0; l < kSideBySide; ++l) {
                        sum_re[l] += re[from + l] * w.re - im[from + l] * w.im;
                        sum_im[l] += re[from + l] * w.im + im[from + l] * w.re;
                    }
                    root = (root + k * (step.n / step.radix)) % step.n;
                }
                const std::size_t to = (q + std::size_t{stride} * (step.radix * std::size_t{p} + k)) * kSideBySide;
                for (std::size_t l = 0; l < kSideBySide; ++l) out_re[to + l] = sum_re[l], out_im[to + l] = sum_im[l];
            }
}

/// The largest first: four while it divides, then the smallest prime.
[[nodiscard]] inline std::uint32_t next_radix(std::uint32_t len) noexcept {
    if (len % 4 == 0) return 4;
    for (std::uint32_t r = 2; r * r <= len; ++r)
        if (len % r == 0) return r;
    return len;
}

/// Complex products of a transform of n elements: each step makes every element of as many as its radix.
[[nodiscard]] inline std::uint64_t transform_products(std::uint32_t n) noexcept {
    std::uint64_t radices = 0;
    for (std::uint32_t len = n; len > 1;) {
        const std::uint32_t radix = next_radix(len);
        radices += radix;
        len /= radix;
    }
    return n * radices;
}

}  // namespace fovea
