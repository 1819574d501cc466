#include "tests/convert/quantize/format_by_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/base/elements.h"

namespace fovea::testing {
namespace {

constexpr std::uint16_t kHalfNan = 0x7e00, kBfloatNan = 0x7fc0;

/// What a group multiplies a factor with, at most: an int8, or four bits, which are never below zero.
int most_multiple(const QuantFormat& format) noexcept { return format.scale == QuantScale::nibble ? 15 : 127; }
int least_multiple(const QuantFormat& format) noexcept { return format.scale == QuantScale::nibble ? 0 : -127; }

/// The whole number nearest to x, halves upwards, of those in the range; `least` for NaN.
int clamped(double x, int least, int most) noexcept {
    x = x > least ? x : least;
    x = x < most ? x : most;
    x += 0.5;
    const int cut = static_cast<int>(x);
    return cut - (x < cut);
}

/// Weights x ≈ scale·q − minimum, q from `least` to `most`.
struct Fit {
    double scale = 0, minimum = 0, error = std::numeric_limits<double>::infinity();
};
struct Range {
    int least, most;
};

double squared_error(const float* x, std::uint32_t n, Range range, double scale, double minimum) noexcept {
    double sum = 0;
    const double inverse = scale != 0 ? 1 / scale : 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        const double d = x[i] + minimum - scale * clamped((x[i] + minimum) * inverse, range.least, range.most);
        sum += d * d;
    }
    return sum;
}

/// The scale and minimum with the least squared error for the quants that `from` gives (linear regression); a minimum is
/// never negative, for a group that has none below zero starts there.
Fit regress(const float* x, std::uint32_t n, Range range, const Fit& from) noexcept {
    double q1 = 0, q2 = 0, x1 = 0, xq = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        const int q = clamped((x[i] + from.minimum) / from.scale, range.least, range.most);
        q1 += q;
        q2 += q * q;
        x1 += x[i];
        xq += static_cast<double>(x[i]) * q;
    }
    const double determinant = n * q2 - q1 * q1;
    Fit fit = from;
    if (determinant > 0) {
        fit.scale = (n * xq - q1 * x1) / determinant;
        fit.minimum = (q1 * xq - q2 * x1) / determinant;
    }
    if (fit.minimum < 0 && q2 > 0) {
        fit.minimum = 0;
        fit.scale = xq / q2;
    }
    fit.error = squared_error(x, n, range, fit.scale, fit.minimum);
    return fit;
}

Fit fit_with_minimum(const float* x, std::uint32_t n, Range range) noexcept {
    const auto [low, high] = std::minmax_element(x, x + n);
    const double minimum = std::max(0.0, -static_cast<double>(*low)), width = *high + minimum;
    Fit best;
    if (width <= 0) return {0, minimum, squared_error(x, n, range, 0, minimum)};
    for (int percent = 100; percent >= 70; percent -= 5) {
        // The middle stays: as much is cut off below as above.
        const double kept = percent / 100.0, cut = minimum > 0 ? width * (1 - kept) / 2 : 0;
        Fit fit{width * kept / range.most, minimum - cut};
        for (int again = 0; again < 3 && fit.scale > 0; ++again) {
            fit = regress(x, n, range, fit);
            if (fit.error < best.error) best = fit;
        }
    }
    return best;
}

/// A scale alone, of either sign: the extreme is brought near to either end of the range.
Fit fit_scale(const float* x, std::uint32_t n, Range range) noexcept {
    double extreme = 0;
    for (std::uint32_t i = 0; i < n; ++i)
        if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    if (extreme == 0) return {0, 0, 0};
    Fit best;
    for (const int end : {range.least, range.most})
        for (int eighth = -6; eighth <= 6; ++eighth) {
            Fit fit{extreme / (end + eighth / 8.0), 0};
            double products = 0, squares = 0;
            for (std::uint32_t i = 0; i < n; ++i) {
                const int q = clamped(x[i] / fit.scale, range.least, range.most);
                products += static_cast<double>(x[i]) * q;
                squares += q * q;
            }
            fit.scale = products / squares;
            fit.error = squared_error(x, n, range, fit.scale, 0);
            if (fit.error < best.error) best = fit;
        }
    return best;
}

/// The float16 of which `most` is at most most_multiple times.
std::uint16_t factor_for(const QuantFormat& format, double most) noexcept {
    std::uint16_t factor = to_f16(static_cast<float>(most / most_multiple(format)));
    if (most > 0 && from_f16(factor) * (most_multiple(format) + 0.5) < most) ++factor;
    return factor;
}

/// The multiples of both factors with the least error, near those wanted.
void choose_multiples(const QuantFormat& format, const float* x, std::uint32_t n, Range range, const Fit& fit,
                      double factor, double minimum_factor, std::int8_t& scale, std::int8_t& minimum) noexcept {
    const int least = least_multiple(format), most = most_multiple(format);
    const int s = factor > 0 ? clamped(fit.scale / factor, least, most) : 0;
    const int m = minimum_factor > 0 ? clamped(fit.minimum / minimum_factor, 0, most) : 0;
    double best = std::numeric_limits<double>::infinity();
    for (int i = std::max(s - 1, least); i <= std::min(s + 1, most); ++i)
        for (int j = std::max(m - 1, 0); j <= std::min(m + (minimum_factor > 0), most); ++j) {
            const double error = squared_error(x, n, range, i * factor, j * minimum_factor);
            if (error >= best) continue;
            best = error;
            scale = static_cast<std::int8_t>(i);
            minimum = static_cast<std::int8_t>(j);
        }
}

void set_quants(const float* x, std::uint32_t n, Range range, double scale, double minimum, std::int8_t* out) noexcept {
    for (std::uint32_t i = 0; i < n && scale != 0; ++i)
        out[i] = static_cast<std::int8_t>(clamped((x[i] + minimum) / scale, range.least, range.most));
}

void quantize_with_factors(const QuantFormat& format, const float* x, std::uint32_t n_groups,
                           QuantizedGroup* out) noexcept {
    const Range range{-format.zero, (1 << format.bits) - 1 - format.zero};
    const std::uint32_t width = format.scale_columns, parts = kGroup / width;
    Fit fits[kFactorColumns / 16];
    double most_scale = 0, most_minimum = 0;
    for (std::uint32_t i = 0; i < n_groups * parts; ++i) {
        fits[i] =
            format.minima ? fit_with_minimum(x + i * width, width, range) : fit_scale(x + i * width, width, range);
        most_scale = std::max(most_scale, std::fabs(fits[i].scale));
        most_minimum = std::max(most_minimum, fits[i].minimum);
    }
    const std::uint16_t scale = factor_for(format, most_scale), minimum = factor_for(format, most_minimum);
    for (std::uint32_t i = 0; i < n_groups * parts; ++i) {
        QuantizedGroup& group = out[i / parts];
        group.scale = scale;
        group.minimum_factor = minimum;
        const double factor = from_f16(scale), minimum_factor = from_f16(minimum);
        std::int8_t &multiple = group.scales[i % parts], &least = group.minima[i % parts];
        choose_multiples(format, x + i * width, width, range, fits[i], factor, minimum_factor, multiple, least);
        set_quants(x + i * width, width, range, multiple * factor, least * minimum_factor,
                   group.quants.data() + i % parts * width);
    }
}

/// A scale, and a minimum where there are any, as float16.
void quantize_with_scale(const QuantFormat& format, const float* x, QuantizedGroup& out) noexcept {
    const Range range{-format.zero, (1 << format.bits) - 1 - format.zero};
    const Fit fit = format.minima ? fit_with_minimum(x, kGroup, range) : fit_scale(x, kGroup, range);
    out.scale = to_f16(static_cast<float>(fit.scale));
    out.minimum_factor = to_f16(static_cast<float>(fit.minimum));
    set_quants(x, kGroup, range, from_f16(out.scale), from_f16(out.minimum_factor), out.quants.data());
}

/// The number of what is nearest in a codebook, the first of two as near; 0 for NaN.
std::int8_t nearest(const std::int8_t* codebook, double x) noexcept {
    int best = 0;
    for (int i = 1; i < 16; ++i)
        if (std::fabs(x - codebook[i]) < std::fabs(x - codebook[best])) best = i;
    return static_cast<std::int8_t>(best);
}

/// The group's quants, and what is lost with that scale.
double round_by_codebook(const QuantFormat& format, const float* x, double scale, std::int8_t* quants) noexcept {
    double error = 0;
    for (std::uint32_t i = 0; i < kGroup; ++i) {
        quants[i] = nearest(format.codebook, x[i] / scale);
        const double d = x[i] - scale * format.codebook[quants[i]];
        error += d * d;
    }
    return error;
}

float extreme_of(const float* x) noexcept {
    float extreme = 0;
    for (std::uint32_t i = 0; i < kGroup; ++i)
        if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    return extreme;
}

/// A scale of either sign: the extreme is brought near to either end of the codebook, and each time the entries say which
/// scale is best beside them. The best of those says its entries once more.
double fit_codebook_scale(const QuantFormat& format, const float* x) noexcept {
    const double extreme = extreme_of(x);
    double best = 0, best_gain = 0;
    const auto attempt = [&](double scale) {
        double products = 0, squares = 0;
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            const double entry = format.codebook[nearest(format.codebook, x[i] / scale)];
            products += x[i] * entry;
            squares += entry * entry;
        }
        const double gain = products * products / squares;
        if (!(gain > best_gain)) return;
        best_gain = gain;
        best = products / squares;
    };
    for (const double end : {-127.0, 113.0})
        for (int beyond = -24; beyond <= 24; beyond += 4) attempt(extreme / (end + beyond));
    attempt(best);
    return best;
}

void quantize_by_codebook(const QuantFormat& format, const float* x, QuantizedGroup& out) noexcept {
    const double extreme = extreme_of(x);
    if (extreme == 0) return;
    if (format.scale == QuantScale::f16) {
        out.scale = to_f16(static_cast<float>(fit_codebook_scale(format, x)));
        const double scale = from_f16(out.scale);
        if (scale != 0 && std::isfinite(scale)) (void)round_by_codebook(format, x, scale, out.quants.data());
        return;
    }
    double best = std::numeric_limits<double>::infinity();
    const int exponent = std::ilogb(extreme) - 3;  // of 8 to 12 the codebook has the ends
    for (int i = -1; i <= 1; ++i) {
        QuantizedGroup group{.scale =
                                 to_bf16(static_cast<float>(std::ldexp(1.0, std::clamp(exponent + i, -128, 126))))};
        const double error = round_by_codebook(format, x, from_bf16(group.scale), group.quants.data());
        if (error >= best) continue;
        best = error;
        out = group;
    }
}

/// Each group's best scale, then its multiple of the factor.
void quantize_by_codebook_and_factor(const QuantFormat& format, const float* x, std::uint32_t n_groups,
                                     QuantizedGroup* out) noexcept {
    double scales[kFactorColumns / kGroup] = {}, most = 0;
    std::int8_t quants[kGroup];
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        scales[g] = fit_codebook_scale(format, x + g * kGroup);
        most = std::max(most, std::fabs(scales[g]));
    }
    const std::uint16_t stored = factor_for(format, most);
    const double factor = from_f16(stored);
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        out[g].scale = stored;
        if (factor == 0 || !std::isfinite(factor) || scales[g] == 0) continue;
        const int wanted = clamped(scales[g] / factor, least_multiple(format), most_multiple(format));
        double best = squared_error(x + g * kGroup, kGroup, {0, 0}, 0, 0);  // with a multiple of zero
        for (int i = std::max(wanted - 1, least_multiple(format)); i <= std::min(wanted + 1, most_multiple(format));
             ++i) {
            if (i == 0) continue;
            const double error = round_by_codebook(format, x + g * kGroup, i * factor, quants);
            if (error >= best) continue;
            best = error;
            out[g].scales[0] = static_cast<std::int8_t>(i);
            std::copy_n(quants, kGroup, out[g].quants.data());
        }
    }
}

/// 128 columns share a scale: amax/127 rounded to f16, the next larger if that is too small by more than half a step.
void quantize_broad(const float* x, std::uint32_t n_groups, QuantizedGroup* out) noexcept {
    constexpr std::uint32_t kStep = kBroadGroup / kGroup;
    for (std::uint32_t first = 0; first < n_groups; first += kStep) {
        const std::uint32_t n = std::min(kStep, n_groups - first) * kGroup;
        const float* group = x + first * kGroup;
        float most = 0;
        for (std::uint32_t i = 0; i < n; ++i) most = std::max(most, std::fabs(group[i]));
        std::uint16_t stored = to_f16(most / 127.0f);
        if (std::isfinite(from_f16(stored)) && most > 127.5f * from_f16(stored)) ++stored;
        for (std::uint32_t i = 0; i < n; i += kGroup) {
            QuantizedGroup& part = out[first + i / kGroup];
            part.scale = stored;
            part.scales = {1, 1};
            if (std::isfinite(from_f16(stored)))
                set_quants(group + i, kGroup, {-127, 127}, from_f16(stored), 0, part.quants.data());
        }
    }
}

/// One scale for all groups, the best of sixteen thresholds for what is not zero. A matrix that has three numbers keeps them.
void quantize_ternary(const float* x, std::uint32_t n_groups, QuantizedGroup* out) noexcept {
    const std::uint32_t n = n_groups * kGroup;
    float extreme = 0;
    for (std::uint32_t i = 0; i < n; ++i) extreme = std::max(extreme, std::fabs(x[i]));
    constexpr Range kRange{-1, 1};
    Fit best{0, 0, squared_error(x, n, kRange, 0, 0)};
    for (int sixteenth = 1; extreme != 0 && sixteenth <= 16; ++sixteenth) {
        Fit fit{static_cast<double>(extreme) * sixteenth / 16};
        double products = 0, squares = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            const int q = clamped(x[i] / fit.scale, kRange.least, kRange.most);
            products += static_cast<double>(x[i]) * q;
            squares += q * q;
        }
        fit.scale = products / squares;  // the extreme's quant is not zero
        fit.error = squared_error(x, n, kRange, fit.scale, 0);
        if (fit.error < best.error) best = fit;
    }
    const std::uint16_t stored = to_f16(static_cast<float>(best.scale));
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        out[g].scale = stored;
        out[g].scales = {1, 1};
        set_quants(x + g * kGroup, kGroup, kRange, from_f16(stored), 0, out[g].quants.data());
    }
}

}  // namespace

void quantize_row(Type type, const float* x, std::uint32_t n, QuantizedGroup* out) noexcept {
    const QuantFormat& format = format_of(type);
    const std::uint32_t n_groups = (n + kGroup - 1) / kGroup;
    float padded[kFactorColumns] = {};
    std::copy_n(x, n, padded);
    for (std::uint32_t i = 0; i < n_groups; ++i) out[i] = {};
    const bool finite = std::all_of(x, x + n, [](float value) { return std::isfinite(value); });
    if (format.broad() && finite) return quantize_broad(padded, n_groups, out);
    if (format.scale == QuantScale::alone && finite) return quantize_ternary(padded, n_groups, out);
    if (format.factors() && format.codebook && finite)
        return quantize_by_codebook_and_factor(format, padded, n_groups, out);
    if (format.factors() && finite) return quantize_with_factors(format, padded, n_groups, out);
    for (std::uint32_t i = 0; i < n_groups; ++i) {
        const float* group = padded + i * kGroup;
        const bool whole = std::all_of(group, group + kGroup, [](float value) { return std::isfinite(value); });
        if (format.factors() || !whole)
            out[i] = {.scale = format.scale == QuantScale::bf16 ? kBfloatNan : kHalfNan};
        else if (format.codebook)
            quantize_by_codebook(format, group, out[i]);
        else
            quantize_with_scale(format, group, out[i]);
    }
}

}  // namespace fovea::testing
