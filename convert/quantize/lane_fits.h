// Scales and minima that lose least: least squares over n of sixteen lanes at a time.
#pragma once
#include <cstdint>
#include <limits>

#include "convert/quantize/lane_vectors.h"

namespace fovea {

/// Whole numbers that a quant may be.
struct Range {
    double least, most;
};

/// A part of the columns, of n lanes from `first` on.
template<std::uint32_t n>
struct Slice {
    using Doubles = typename Vector<n>::Doubles;
    const Row* x;
    std::uint32_t n_cols, first;
    FOVEA_INLINE Doubles operator[](std::uint32_t i) const noexcept { return load<Doubles>(x[i], first); }
};

/// The whole number nearest to x, halves upwards, of those in the range; the least for NaN.
template<class Doubles>
FOVEA_INLINE Doubles clamped(Doubles x, Range range) noexcept {
    const Doubles least = Doubles{} + range.least, most = Doubles{} + range.most;
    x = x > least ? x : least;
    x = x < most ? x : most;
    x += 0.5;
    const Doubles nearest = (x + 0x1.8p52) - 0x1.8p52;
    return nearest > x ? nearest - 1.0 : nearest;
}

/// Weights x ≈ scale·q − minimum, q of a range.
template<class Doubles>
struct Fit {
    Doubles scale = {}, minimum = {}, error = Doubles{} + std::numeric_limits<double>::infinity();

    /// Where `better` is set, `other`.
    template<class Mask>
    FOVEA_INLINE void take(const Mask& better, const Fit& other) noexcept {
        scale = better ? other.scale : scale;
        minimum = better ? other.minimum : minimum;
        error = better ? other.error : error;
    }
};

template<std::uint32_t n, class Doubles>
FOVEA_INLINE Doubles squared_error(const Slice<n>& x, Range range, const Doubles& scale,
                                   const Doubles& minimum) noexcept {
    Doubles sum = {};
    const Doubles inverse = scale != 0 ? 1.0 / scale : Doubles{};
    for (std::uint32_t i = 0; i < x.n_cols; ++i) {
        const Doubles raised = x[i] + minimum, d = raised - scale * clamped(raised * inverse, range);
        sum += d * d;
    }
    return sum;
}

/// The scale and minimum with the least squared error for the quants that `fit` gives (linear regression); a minimum is
/// never negative, for a group that has none below zero starts there.
template<std::uint32_t n, class Doubles>
FOVEA_INLINE void regress(const Slice<n>& x, Range range, Fit<Doubles>& fit) noexcept {
    Doubles q1 = {}, q2 = {}, x1 = {}, xq = {};
    for (std::uint32_t i = 0; i < x.n_cols; ++i) {
        const Doubles value = x[i], q = clamped((value + fit.minimum) / fit.scale, range);
        q1 += q;
        q2 += q * q;
        x1 += value;
        xq += value * q;
    }
    const Doubles count = Doubles{} + x.n_cols, determinant = count * q2 - q1 * q1;
    fit.scale = determinant > 0 ? (count * xq - q1 * x1) / determinant : fit.scale;
    fit.minimum = determinant > 0 ? (q1 * xq - q2 * x1) / determinant : fit.minimum;
    const auto below = (fit.minimum < 0) & (q2 > 0);
    fit.scale = below ? xq / q2 : fit.scale;
    fit.minimum = below ? Doubles{} : fit.minimum;
    fit.error = squared_error(x, range, fit.scale, fit.minimum);
}

template<std::uint32_t n>
FOVEA_INLINE auto fit_with_minimum(const Slice<n>& x, Range range) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    Doubles low = x[0], high = low;
    for (std::uint32_t i = 1; i < x.n_cols; ++i) {
        const Doubles value = x[i];
        low = value < low ? value : low;
        high = high < value ? value : high;
    }
    const Doubles minimum = low < 0 ? -low : Doubles{}, width = high + minimum;
    Fit<Doubles> best;
    for (int percent = 100; percent >= 70; percent -= 5) {
        // The middle stays: as much is cut off below as above.
        const double kept = percent / 100.0;
        const Doubles cut = minimum > 0 ? width * (1 - kept) / 2.0 : Doubles{};
        Fit<Doubles> fit{width * kept / range.most, minimum - cut};
        auto active = fit.scale > 0;
        for (int again = 0; again < 3; ++again) {
            regress(x, range, fit);
            best.take(active & (fit.error < best.error), fit);
            active &= fit.scale > 0;
        }
    }
    best.minimum = width <= 0 ? minimum : best.minimum;
    return best;
}

/// The element of largest magnitude, the first of several.
template<std::uint32_t n>
FOVEA_INLINE auto extreme_of(const Slice<n>& x) noexcept {
    typename Vector<n>::Doubles extreme = {}, most = {};
    for (std::uint32_t i = 0; i < x.n_cols; ++i) {
        const auto value = x[i], magnitude = value < 0 ? -value : value;
        extreme = magnitude > most ? value : extreme;
        most = magnitude > most ? magnitude : most;
    }
    return extreme;
}

/// The best scale, without a minimum, for the quants that fit.scale gives, which are not all zero.
template<std::uint32_t n, class Doubles>
FOVEA_INLINE void fit_to_quants(const Slice<n>& x, Range range, Fit<Doubles>& fit) noexcept {
    Doubles products = {}, squares = {};
    for (std::uint32_t i = 0; i < x.n_cols; ++i) {
        const Doubles value = x[i], q = clamped(value / fit.scale, range);
        products += value * q;
        squares += q * q;
    }
    fit.scale = products / squares;
    fit.error = squared_error(x, range, fit.scale, Doubles{});
}

/// Only a scale, of either sign: the extreme is brought near to either end of the range.
template<std::uint32_t n>
FOVEA_INLINE auto fit_scale(const Slice<n>& x, Range range) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    const Doubles extreme = extreme_of(x);
    Fit<Doubles> best;
    for (int end = 0; end < 2; ++end)
        for (int eighth = -6; eighth <= 6; ++eighth) {
            Fit<Doubles> fit{extreme / ((end ? range.most : range.least) + eighth / 8.0)};
            fit_to_quants(x, range, fit);
            best.take((extreme != 0) & (fit.error < best.error), fit);
        }
    return best;
}

}  // namespace fovea
