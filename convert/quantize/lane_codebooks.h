// Scales of groups whose quants stand for a codebook's numbers, over n of sixteen lanes at a time.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "convert/quantize/lane_fits.h"
#include "host/base/elements.h"

namespace fovea {

/// A codebook as a staircase: its entries ascending, a step at each midpoint of two. kFloat4 has the steps of its
/// magnitudes; negative numbers are 8 entries later.
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
    const auto below_zero = flips & (number > 0);
    number += below_zero ? Doubles{} + 8.0 : Doubles{};
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

/// The power of two with the least error of the three that bring the extreme near to the codebook's ends, 8 to 12.
template<std::uint32_t n>
FOVEA_INLINE void find_power(const Staircase& stairs, const Row* x, Row& scales) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    alignas(64) Row extremes, tried, best_errors;
    for (std::uint32_t first = 0; first < kLanes; first += n) {
        store(extremes, first, extreme_of(Slice<n>{x, kGroup, first}));
        store(best_errors, first, Doubles{} + std::numeric_limits<double>::infinity());
        store(scales, first, Doubles{});
    }
    for (int more = -1; more <= 1; ++more) {
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const int exponent = extremes[lane] == 0 ? 0 : std::clamp(std::ilogb(extremes[lane]) - 3 + more, -128, 126);
            tried[lane] = from_bf16(to_bf16(static_cast<float>(std::ldexp(1.0, exponent))));
        }
        for (std::uint32_t first = 0; first < kLanes; first += n) {
            const Slice<n> group{x, kGroup, first};
            const auto scale = load<Doubles>(tried, first), best = load<Doubles>(best_errors, first);
            const Doubles error = codebook_error(stairs, group, scale);
            const auto better = (load<Doubles>(extremes, first) != 0) & (error < best);
            store(best_errors, first, better ? error : best);
            store(scales, first, better ? scale : load<Doubles>(scales, first));
        }
    }
}

/// The best scale for the entries e that `scale` gives is Σxe/Σe². It lowers the error Σx² by (Σxe)²/Σe²: if that is
/// more than the best so far, both become the best.
template<std::uint32_t n, class Doubles>
FOVEA_INLINE void fit_to_entries(const Staircase& stairs, const Slice<n>& x, const Doubles& scale, Doubles& best,
                                 Doubles& best_gain) noexcept {
    Doubles products = {}, squares = {}, entry, number;
    for (std::uint32_t i = 0; i < kGroup; ++i) {
        const Doubles value = x[i];
        climb(stairs, value / scale, entry, number);
        products += value * entry;
        squares += entry * entry;
    }
    const Doubles gain = products * products / squares;
    best = gain > best_gain ? products / squares : best;
    best_gain = gain > best_gain ? gain : best_gain;
}

/// A scale of either sign, 0 for a group of zeros: the extreme is brought near to either end of the codebook, and the best
/// of those is fitted again.
template<std::uint32_t n>
FOVEA_INLINE auto fit_codebook_scale(const Staircase& stairs, const Slice<n>& x) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    const Doubles extreme = extreme_of(x);
    Doubles scale = {}, gain = {};
    for (int end = 0; end < 2; ++end)
        for (int beyond = -24; beyond <= 24; beyond += 4)
            fit_to_entries(stairs, x, extreme / ((end ? 113.0 : -127.0) + beyond), scale, gain);
    const Doubles from = scale;
    fit_to_entries(stairs, x, from, scale, gain);
    return scale;
}

}  // namespace fovea
