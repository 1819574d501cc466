#include "convert/quantize/format_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "convert/quantize/factor_formats.h"
#include "convert/quantize/lane_codebooks.h"
#include "convert/quantize/lane_fits.h"
#include "host/base/elements.h"

namespace fovea {
namespace {

constexpr std::uint32_t kParts = kFactorColumns / 16;  // the most scales that a row's columns have

/// The multiples of a factor that a group may have: an int8, or four bits, which are never below zero.
Range multiples_of(const QuantFormat& format) noexcept {
    return format.scale == QuantScale::nibble ? Range{0, 15} : Range{-127, 127};
}

struct alignas(64) Work {
    Row x[kFactorColumns];  // zeros behind the last
    Row scales[kParts], minima[kParts];
    Row errors;  // of what is written
    std::uint32_t n_cols;
    std::int32_t quants[kFactorColumns][kLanes];
};

/// Sets a part's quants, and adds what is lost.
template<std::uint32_t n>
FOVEA_INLINE void set_quants(Work& work, std::uint32_t col, std::uint32_t width, std::uint32_t first, Range range,
                             const Row& scales, const Row& minima) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    const Slice<n> x{work.x + col, width, first};
    const auto scale = load<Doubles>(scales, first), minimum = load<Doubles>(minima, first);
    auto error = load<Doubles>(work.errors, first);
    for (std::uint32_t i = 0; i < width; ++i) {
        const Doubles value = x[i], q = scale != 0 ? clamped((value + minimum) / scale, range) : Doubles{};
        const Doubles d = value - (scale * q - minimum);
        if (col + i < work.n_cols) error += d * d;
        store(work.quants[col + i], first, __builtin_convertvector(q, typename Vector<n>::Integers));
    }
    store(work.errors, first, error);
}

/// The float16 of which `most` is no more than the largest multiple.
std::uint16_t factor_for(const QuantFormat& format, double most) noexcept {
    const double multiple = multiples_of(format).most;
    std::uint16_t factor = to_f16(static_cast<float>(most / multiple));
    if (most > 0 && from_f16(factor) * (multiple + 0.5) < most) ++factor;
    return factor;
}

/// Factors for what the parts of each row have, into the groups and as numbers.
void set_factors(const QuantFormat& format, const Row* parts, std::uint32_t n_parts, std::uint16_t QuantizedGroup::*to,
                 Row& factors, FormatLanes& out) noexcept {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        double most = 0;
        for (std::uint32_t i = 0; i < n_parts; ++i) most = std::max(most, std::fabs(parts[i][lane]));
        const std::uint16_t stored = factor_for(format, most);
        for (auto& group : out.groups) group[lane].*to = stored;
        factors[lane] = from_f16(stored);
    }
}

/// The multiples of both factors with the least error, near those wanted; the part's scale and minimum become theirs.
template<std::uint32_t n>
FOVEA_INLINE void choose_multiples(const QuantFormat& format, const Slice<n>& x, Range range, const Row& factors,
                                   const Row& minimum_factors, Row& scales, Row& minima, Row& multiples,
                                   Row& minimum_multiples) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    const Range whole = multiples_of(format), positive{0, whole.most};
    const auto factor = load<Doubles>(factors, x.first), minimum_factor = load<Doubles>(minimum_factors, x.first);
    const Doubles s = factor > 0 ? clamped(load<Doubles>(scales, x.first) / factor, whole) : Doubles{};
    const Doubles m =
        minimum_factor > 0 ? clamped(load<Doubles>(minima, x.first) / minimum_factor, positive) : Doubles{};
    Doubles best = Doubles{} + std::numeric_limits<double>::infinity(), scale = {}, minimum = {};
    for (int up = -1; up <= 1; ++up)
        for (int more = format.minima ? -1 : 0; more <= (format.minima ? 1 : 0); ++more) {
            const Doubles i = s + up, j = m + more;
            const auto there = (i >= whole.least) & (i <= whole.most) & (j >= 0) & (j <= positive.most) &
                               ((minimum_factor > 0) | (j == 0));
            const Doubles error = squared_error(x, range, i * factor, j * minimum_factor);
            const auto better = there & ~(error >= best);
            best = better ? error : best;
            scale = better ? i : scale;
            minimum = better ? j : minimum;
        }
    store(multiples, x.first, scale);
    store(minimum_multiples, x.first, minimum);
    store(scales, x.first, scale * factor);
    store(minima, x.first, minimum * minimum_factor);
}

template<std::uint32_t n>
FOVEA_INLINE void quantize_with_factors(const QuantFormat& format, Range range, Work& work, std::uint32_t n_groups,
                                        FormatLanes& out) noexcept {
    const std::uint32_t width = format.scale_columns, per_group = kGroup / width, n_parts = n_groups * per_group;
    for (std::uint32_t part = 0; part < n_parts; ++part)
        for (std::uint32_t first = 0; first < kLanes; first += n) {
            const Slice<n> x{work.x + part * width, width, first};
            const auto fit = format.minima ? fit_with_minimum(x, range) : fit_scale(x, range);
            store(work.scales[part], first, fit.scale);
            store(work.minima[part], first, fit.minimum);
        }
    alignas(64) Row factors, minimum_factors, multiples, minimum_multiples;
    set_factors(format, work.scales, n_parts, &QuantizedGroup::scale, factors, out);
    set_factors(format, work.minima, n_parts, &QuantizedGroup::minimum_factor, minimum_factors, out);
    for (std::uint32_t part = 0; part < n_parts; ++part) {
        for (std::uint32_t first = 0; first < kLanes; first += n) {
            const Slice<n> x{work.x + part * width, width, first};
            choose_multiples(format, x, range, factors, minimum_factors, work.scales[part], work.minima[part],
                             multiples, minimum_multiples);
            set_quants<n>(work, part * width, width, first, range, work.scales[part], work.minima[part]);
        }
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            QuantizedGroup& group = out.groups[part / per_group][lane];
            group.scales[part % per_group] = static_cast<std::int8_t>(multiples[lane]);
            group.minima[part % per_group] = static_cast<std::int8_t>(minimum_multiples[lane]);
        }
    }
}

/// Each group's own scale, and its minimum if there are any, rounded to float16.
template<std::uint32_t n>
FOVEA_INLINE void quantize_with_scales(const QuantFormat& format, Range range, Work& work, std::uint32_t n_groups,
                                       FormatLanes& out) noexcept {
    Row &scales = work.scales[0], &minima = work.minima[0];
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        for (std::uint32_t first = 0; first < kLanes; first += n) {
            const Slice<n> x{work.x + g * kGroup, kGroup, first};
            const auto fit = format.minima ? fit_with_minimum(x, range) : fit_scale(x, range);
            store(scales, first, fit.scale);
            store(minima, first, fit.minimum);
        }
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            QuantizedGroup& group = out.groups[g][lane];
            group.scale = to_f16(static_cast<float>(scales[lane]));
            group.minimum_factor = to_f16(static_cast<float>(minima[lane]));
            scales[lane] = from_f16(group.scale);
            minima[lane] = from_f16(group.minimum_factor);
        }
        for (std::uint32_t first = 0; first < kLanes; first += n)
            set_quants<n>(work, g * kGroup, kGroup, first, range, scales, minima);
    }
}

/// The multiple of the factor with the least error, near the one wanted, 0 among them; the scale becomes its own.
template<std::uint32_t n>
FOVEA_INLINE void choose_multiple(const QuantFormat& format, const Staircase& stairs, const Slice<n>& x,
                                  const Row& factors, Row& scales, Row& multiples) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    const Range whole = multiples_of(format);
    const auto factor = load<Doubles>(factors, x.first), scale = load<Doubles>(scales, x.first);
    const auto usable = (factor != 0) & (factor - factor == 0) & (scale != 0);
    const Doubles wanted = clamped(scale / factor, whole), zero = {};
    Doubles best = squared_error(x, Range{0, 0}, zero, zero), multiple = {};
    for (int up = -1; up <= 1; ++up) {
        const Doubles i = wanted + up;
        const Doubles error = codebook_error(stairs, x, i * factor);
        const auto better = usable & (i >= whole.least) & (i <= whole.most) & (i != 0) & (error < best);
        best = better ? error : best;
        multiple = better ? i : multiple;
    }
    store(multiples, x.first, multiple);
    store(scales, x.first, multiple * factor);
}

template<std::uint32_t n>
FOVEA_INLINE void quantize_by_codebook(const QuantFormat& format, Work& work, std::uint32_t n_groups,
                                       FormatLanes& out) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    const Staircase& stairs = format.codebook == kNonlinear4 ? kNonlinearSteps : kFloatSteps;
    alignas(64) Row factors, multiples;
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        const Row* x = work.x + g * kGroup;
        if (format.scale == QuantScale::bf16) {
            find_power<n>(stairs, x, work.scales[g]);
            continue;
        }
        for (std::uint32_t first = 0; first < kLanes; first += n)
            store(work.scales[g], first, fit_codebook_scale(stairs, Slice<n>{x, kGroup, first}));
        for (std::uint32_t lane = 0; lane < kLanes && !format.factors(); ++lane)
            work.scales[g][lane] = from_f16(to_f16(static_cast<float>(work.scales[g][lane])));
    }
    if (format.factors()) set_factors(format, work.scales, n_groups, &QuantizedGroup::scale, factors, out);
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        for (std::uint32_t first = 0; first < kLanes; first += n) {
            const Slice<n> x{work.x + g * kGroup, kGroup, first};
            if (format.factors()) choose_multiple(format, stairs, x, factors, work.scales[g], multiples);
            const auto scale = load<Doubles>(work.scales[g], first);
            auto error = load<Doubles>(work.errors, first);
            for (std::uint32_t i = 0; i < kGroup; ++i) {
                Doubles entry, number;
                climb(stairs, x[i] / scale, entry, number);
                const auto has = (scale != 0) & (scale - scale == 0);
                const Doubles d = x[i] - scale * entry;
                if (g * kGroup + i < work.n_cols) error += scale != 0 ? d * d : x[i] * x[i];
                number = has ? number : Doubles{};
                store(work.quants[g * kGroup + i], first,
                      __builtin_convertvector(number, typename Vector<n>::Integers));
            }
            store(work.errors, first, error);
        }
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            QuantizedGroup& group = out.groups[g][lane];
            const double scale = work.scales[g][lane];
            if (format.factors())
                group.scales[0] = static_cast<std::int8_t>(multiples[lane]);
            else
                group.scale = format.scale == QuantScale::bf16 ? to_bf16(static_cast<float>(scale))
                                                               : to_f16(static_cast<float>(scale));
        }
    }
}

/// Columns from `col` on that share one float16 scale, which work.scales[0] has.
template<std::uint32_t n>
FOVEA_INLINE void set_shared_scale(Work& work, std::uint32_t col, std::uint32_t width, Range range,
                                   FormatLanes& out) noexcept {
    alignas(64) const Row none = {};
    for (std::uint32_t first = 0; first < kLanes; first += n)
        set_quants<n>(work, col, width, first, range, work.scales[0], none);
    for (std::uint32_t g = col / kGroup; g < (col + width) / kGroup; ++g)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            out.groups[g][lane].scale = to_f16(static_cast<float>(work.scales[0][lane]));
            out.groups[g][lane].scales = {1, 1};
        }
}

/// 128 columns share a scale: amax/127 rounded to f16, the next larger if that is too small by more than half a step.
template<std::uint32_t n>
FOVEA_INLINE void quantize_broad(Range range, Work& work, std::uint32_t n_groups, FormatLanes& out) noexcept {
    for (std::uint32_t col = 0; col < n_groups * kGroup; col += kBroadGroup) {
        const std::uint32_t width = std::min(kBroadGroup, n_groups * kGroup - col);
        for (std::uint32_t first = 0; first < kLanes; first += n)
            store(work.scales[0], first, extreme_of(Slice<n>{work.x + col, width, first}));
        for (double& scale : work.scales[0]) {
            const auto most = static_cast<float>(std::fabs(scale));
            std::uint16_t stored = to_f16(most / 127.0f);
            if (std::isfinite(from_f16(stored)) && most > 127.5f * from_f16(stored)) ++stored;
            scale = from_f16(stored);
        }
        set_shared_scale<n>(work, col, width, range, out);
    }
}

/// One scale for all, the best of sixteen thresholds for what is not zero. A matrix that has three numbers keeps them.
template<std::uint32_t n>
FOVEA_INLINE void quantize_ternary(Range range, Work& work, std::uint32_t n_groups, FormatLanes& out) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    for (std::uint32_t first = 0; first < kLanes; first += n) {
        const Slice<n> x{work.x, n_groups * kGroup, first};
        const Doubles extreme = extreme_of(x), size = extreme < 0 ? -extreme : extreme, zero = {};
        Fit<Doubles> best{zero, zero, squared_error(x, range, zero, zero)};
        for (int sixteenth = 1; sixteenth <= 16; ++sixteenth) {
            Fit<Doubles> fit{size * static_cast<double>(sixteenth) / 16.0};
            fit_to_quants(x, range, fit);
            best.take((size != 0) & (fit.error < best.error), fit);
        }
        store(work.scales[0], first, best.scale);
    }
    for (double& scale : work.scales[0]) scale = from_f16(to_f16(static_cast<float>(scale)));
    set_shared_scale<n>(work, 0, n_groups * kGroup, range, out);
}

/// Reads the columns; what shares a scale with a number that is not finite becomes zeros. Bit `lane` of odd[g] is set
/// if group g of that row is such.
void read_columns(const QuantFormat& format, const float (*x)[kLanes], std::uint32_t n, std::uint32_t n_groups,
                  Work& work, FormatLanes& out, std::uint16_t (&odd)[kFactorColumns / kGroup]) noexcept {
    work.n_cols = n;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) out.totals[lane] = work.errors[lane] = 0;
    float sums[kFactorColumns / kGroup][kLanes] = {};  // of zeros, or NaN
    for (std::uint32_t i = 0; i < n; ++i)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const double value = x[i][lane];
            work.x[i][lane] = value;
            out.totals[lane] += value * value;
            sums[i / kGroup][lane] += x[i][lane] - x[i][lane];
        }
    for (std::uint32_t i = n; i < n_groups * kGroup; ++i)
        for (double& value : work.x[i]) value = 0;
    std::uint16_t any = 0;
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        odd[g] = 0;
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) odd[g] |= (sums[g][lane] != 0) << lane;
        any |= odd[g];
    }
    if (!any) return;
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        if (format.factors()) odd[g] = any;
        for (std::uint32_t i = g * kGroup; i < (g + 1) * kGroup; ++i)
            for (std::uint32_t lane = 0; lane < kLanes; ++lane)
                if (odd[g] >> lane & 1) work.x[i][lane] = 0;
    }
}

/// Puts quants into the groups; a group that is not finite gets a NaN scale.
void finish(const QuantFormat& format, const float (*x)[kLanes], const Work& work, std::uint32_t n_groups,
            const std::uint16_t (&odd)[kFactorColumns / kGroup], FormatLanes& out) noexcept {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) out.errors[lane] = work.errors[lane];
    out.overflow = false;
    for (std::uint32_t g = 0; g < n_groups; ++g)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            QuantizedGroup& group = out.groups[g][lane];
            if (odd[g] >> lane & 1) {
                group = {.scale = format.scale == QuantScale::bf16 ? kBfloatNan : kHalfNan};
                out.errors[lane] = std::numeric_limits<double>::quiet_NaN();
                for (std::uint32_t i = g * kGroup; i < std::min(work.n_cols, (g + 1) * kGroup); ++i)
                    out.overflow |= std::isfinite(x[i][lane]);
                continue;
            }
            const bool bf16 = format.scale == QuantScale::bf16;
            out.overflow |= !std::isfinite(bf16 ? from_bf16(group.scale) : from_f16(group.scale)) ||
                            !std::isfinite(from_f16(group.minimum_factor));
            for (std::uint32_t i = 0; i < kGroup; ++i)
                group.quants[i] = static_cast<std::int8_t>(work.quants[g * kGroup + i][lane]);
        }
}

template<std::uint32_t n>
FOVEA_INLINE void quantize_by(Type type, const float (*x)[kLanes], std::uint32_t n_cols, FormatLanes& out) noexcept {
    const QuantFormat& format = format_of(type);
    const QuantRange whole = quant_range(type);
    const Range range{static_cast<double>(whole.least), static_cast<double>(whole.most)};
    const std::uint32_t n_groups = (n_cols + kGroup - 1) / kGroup;
    Work work;
    std::uint16_t odd[kFactorColumns / kGroup];
    for (std::uint32_t g = 0; g < n_groups; ++g)
        for (QuantizedGroup& group : out.groups[g]) group = {};
    read_columns(format, x, n_cols, n_groups, work, out, odd);
    if (format.broad())
        quantize_broad<n>(range, work, n_groups, out);
    else if (format.scale == QuantScale::alone)
        quantize_ternary<n>(range, work, n_groups, out);
    else if (format.codebook)
        quantize_by_codebook<n>(format, work, n_groups, out);
    else if (format.factors())
        quantize_with_factors<n>(format, range, work, n_groups, out);
    else
        quantize_with_scales<n>(format, range, work, n_groups, out);
    finish(format, x, work, n_groups, odd, out);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void by_avx512(Type type, const float (*x)[kLanes], std::uint32_t n,
                                                  FormatLanes& out) noexcept {
    quantize_by<8>(type, x, n, out);
}
__attribute__((target("avx2"))) void by_avx2(Type type, const float (*x)[kLanes], std::uint32_t n,
                                             FormatLanes& out) noexcept {
    quantize_by<4>(type, x, n, out);
}
#endif
void by_baseline(Type type, const float (*x)[kLanes], std::uint32_t n, FormatLanes& out) noexcept {
    quantize_by<2>(type, x, n, out);
}

constexpr FormatQuantizer kFormatQuantizers[] = {
#if defined(__x86_64__)
    {"avx512", by_avx512},
    {"avx2", by_avx2},
#endif
    {"baseline", by_baseline},
};

}  // namespace

std::span<const FormatQuantizer> format_quantizers() noexcept {
    return std::span(kFormatQuantizers).subspan(n_too_wide());
}

}  // namespace fovea
