// Scales of groups whose quants stand for a codebook's numbers, over n of sixteen lanes at a time.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "convert/elements.h"
#include "convert/lane_fits.h"

namespace fovea {

/// A codebook as a staircase: its entries ascending, a step at each middle of two. kFloat4 has those of its magnitudes, its
/// negative numbers 8 entries later.
struct Staircase {
    bool of_magnitudes = false;
    int n = 0, first = 0;
    double middles[15] = {}, rises[15] = {};

    constexpr explicit Staircase(const std::int8_t* codebook) noexcept : first(codebook[0]) {
        while (n < 15 && codebook[n + 1] > codebook[n]) {
            middles[n] = (codebook[n] + codebook[n + 1]) / 2.0;
            rises[n] = codebook[n + 1] - codebook[n];
            ++n;
        }
        of_magnitudes = n < 15;
    }
};
inline constexpr Staircase kNonlinearSteps(kNonlinear4), kFloatSteps(kFloat4);

/// The entry nearest to x and its number, the first of two as near; 0's for NaN.
template<class Doubles>
FOVEA_INLINE void climb(const Staircase& stairs, const Doubles& x, Doubles& entry, Doubles& number) noexcept {
    const auto flips = x < 0;
    const Doubles at = stairs.of_magnitudes ? (flips ? -x : x) : x;
    entry = Doubles{} + stairs.first;
    number = Doubles{};
    for (int i = 0; i < stairs.n; ++i) {
        entry += at > stairs.middles[i] ? Doubles{} + stairs.rises[i] : Doubles{};
        number += at > stairs.middles[i] ? Doubles{} + 1.0 : Doubles{};
    }
    if (!stairs.of_magnitudes) return;
    entry = flips ? -entry : entry;
    number += flips & (number > 0) ? Doubles{} + 8.0 : Doubles{};
}

template<std::uint32_t n, class Doubles>
FOVEA_INLINE Doubles codebook_error(const Staircase& stairs, const Slice<n>& x, const Doubles& scale) noexcept {
    Doubles error = {}, entry, number;
    for (std::uint32_t i = 0; i < kGroup; ++i) {
        const Doubles value = x[i];
        climb(stairs, value / scale, entry, number);
        const Doubles d = value - scale * entry;
        error += d * d;
    }
    return error;
}

/// The k-th scale to be tried of a group with that extreme, and how many there are: powers of two that bring it to the
/// ends of kFloat4, or numbers that bring it near to either end of kNonlinear4.
[[nodiscard]] constexpr int n_candidates(const QuantFormat& format) noexcept {
    return format.scale == QuantScale::bf16 ? 3 : 98;
}
[[nodiscard]] inline double candidate(const QuantFormat& format, double extreme, int k) noexcept {
    if (extreme == 0) return 0;
    if (format.scale == QuantScale::bf16)  // of 8 to 12 the codebook has the ends
        return from_bf16(to_bf16(static_cast<float>(std::ldexp(1.0, std::clamp(std::ilogb(extreme) - 4 + k, -128, 126)))));
    const double scale = extreme / (k < 49 ? -127 - 24 + k : 113 - 24 + k - 49);
    return format.scale == QuantScale::f16 ? from_f16(to_f16(static_cast<float>(scale))) : scale;
}

/// A group's best scale of each row; where none is of use, one that is 0 or infinite as they are.
template<std::uint32_t n>
FOVEA_INLINE void find_codebook_scales(const QuantFormat& format, const Staircase& stairs, const Row* x,
                                       Row& scales) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    alignas(64) Row extremes, tried, best_errors;
    for (std::uint32_t first = 0; first < kLanes; first += n) {
        store(extremes, first, extreme_of(Slice<n>{x, kGroup, first}));
        store(best_errors, first, Doubles{} + std::numeric_limits<double>::infinity());
        store(scales, first, Doubles{});
    }
    for (int k = 0; k < n_candidates(format); ++k) {
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) tried[lane] = candidate(format, extremes[lane], k);
        for (std::uint32_t first = 0; first < kLanes; first += n) {
            const auto scale = load<Doubles>(tried, first), best = load<Doubles>(best_errors, first);
            const Doubles error = codebook_error(stairs, Slice<n>{x, kGroup, first}, scale);
            const auto better = (scale != 0) & (scale - scale == 0) & (error < best);
            store(best_errors, first, better ? error : best);
            store(scales, first, better ? scale : load<Doubles>(scales, first));
        }
    }
    for (std::uint32_t lane = 0; lane < kLanes && format.scale == QuantScale::f16; ++lane)
        if (scales[lane] == 0) scales[lane] = from_f16(to_f16(static_cast<float>(extremes[lane] / 127)));
}

}  // namespace fovea
