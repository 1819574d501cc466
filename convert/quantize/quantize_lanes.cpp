#include "convert/quantize/quantize_lanes.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "convert/quantize/lane_vectors.h"
#include "host/base/elements.h"

namespace fovea {
namespace {

constexpr int kFirstQuarter = 24, kLastQuarter = 40;

struct alignas(64) Lanes {
    Row x[kGroup], magnitudes[kGroup];
    Row extreme;     // the element of largest magnitude, the first of several
    Row total;       // Σx²
    Row not_finite;  // 0 if all are finite, else NaN
};

struct alignas(64) Attempt {
    Row steps;     // the scales as numbers
    Row divisors;  // those, or infinity if quants are to be 0
    Row errors;
    std::int32_t quants[kGroup][kLanes];
    std::uint16_t scales[kLanes];
};

template<std::uint32_t n>
FOVEA_INLINE void read_lanes(const float (&x)[kGroup][kLanes], Lanes& lanes) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    for (std::uint32_t first = 0; first < kLanes; first += n) {
        Doubles extreme = {}, extreme_magnitude = {}, total = {}, odd = {};
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            const Doubles value = __builtin_convertvector(load<typename Vector<n>::Floats>(x[i], first), Doubles);
            const Doubles magnitude = value < 0 ? -value : value;
            extreme = magnitude > extreme_magnitude ? value : extreme;
            extreme_magnitude = magnitude > extreme_magnitude ? magnitude : extreme_magnitude;
            total += value * value;
            odd += value - value;  // NaN for infinity and NaN
            store(lanes.x[i], first, value);
            store(lanes.magnitudes[i], first, magnitude);
        }
        store(lanes.extreme, first, extreme);
        store(lanes.total, first, total);
        store(lanes.not_finite, first, odd);
    }
}

/// Quants and errors with scales that are given; see with_scale and squared_error in quantize.cpp.
template<std::uint32_t n>
FOVEA_INLINE void quantize_by_scale(const Lanes& lanes, double least, double most, Attempt& attempt) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    for (std::uint32_t first = 0; first < kLanes; first += n) {
        const auto divisor = load<Doubles>(attempt.divisors, first), step = load<Doubles>(attempt.steps, first);
        const Doubles lowest = Doubles{} + least, highest = Doubles{} + most;
        Doubles error = {};
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            const auto value = load<Doubles>(lanes.x[i], first);
            Doubles quant = value / divisor;
            quant = quant > lowest ? quant : lowest;
            quant = quant < highest ? quant : highest;
            quant = quant < 0 ? quant - 0.5 : quant + 0.5;
            const auto integer = __builtin_convertvector(quant, typename Vector<n>::Integers);
            const Doubles difference = value - __builtin_convertvector(integer, Doubles) * step;
            error += difference * difference;
            store(attempt.quants[i], first, integer);
        }
        store(attempt.errors, first, error);
    }
}

/// One candidate's Σ|x|·quant and Σquant², on the negative side and on the positive.
template<class Doubles>
struct Sums {
    Doubles products[2] = {}, squares[2] = {};
};

/// Brought to the positive side, an element's quant is at most limits[i]: 7 if it has the extreme's sign, else 8. On the
/// negative side it is the reverse. Sums are exact in any order: quants other than 0 belong to elements within a factor of
/// 20 of the extreme.
template<class Doubles>
FOVEA_INLINE void sum_candidate(const Lanes& lanes, std::uint32_t first, const Doubles (&limits)[kGroup],
                                const Doubles& inverse, Sums<Doubles>& sums) noexcept {
    for (std::uint32_t i = 0; i < kGroup; ++i) {
        const auto magnitude = load<Doubles>(lanes.magnitudes[i], first);
        const Doubles limit = limits[i], opposite = 15.0 - limit;
        const Doubles raised = magnitude * inverse + 0.5, nearest = (raised + 0x1p52) - 0x1p52;
        const Doubles quant = nearest > raised ? nearest - 1.0 : nearest;  // raised rounded down
        const Doubles negative = quant < opposite ? quant : opposite, positive = quant < limit ? quant : limit;
        sums.products[0] += magnitude * negative;
        sums.squares[0] += negative * negative;
        sums.products[1] += magnitude * positive;
        sums.squares[1] += positive * positive;
    }
}

/// As best_q4_scale in quantize.cpp, both sides at once. The first of equal gains counts; the negative side is first.
template<std::uint32_t n>
FOVEA_INLINE void find_q4_scales(const Lanes& lanes, Row& best_scales) noexcept {
    using Doubles = typename Vector<n>::Doubles;
    for (std::uint32_t first = 0; first < kLanes; first += n) {
        const auto extreme = load<Doubles>(lanes.extreme, first);
        const Doubles size = extreme < 0 ? -extreme : extreme, zero = {};
        const Doubles largest = size == zero ? size + 1.0 : size;
        Doubles limits[kGroup];
        for (std::uint32_t i = 0; i < kGroup; ++i)
            limits[i] = load<Doubles>(lanes.x[i], first) * (extreme < 0 ? zero - 1.0 : zero + 1.0) < 0 ? zero + 8.0
                                                                                                       : zero + 7.0;
        Doubles gains[2] = {};
        Sums<Doubles> best;
        for (int quarters = kFirstQuarter; quarters <= kLastQuarter; ++quarters) {
            Sums<Doubles> sums;
            sum_candidate(lanes, first, limits, (zero + 0.25 * quarters) / largest, sums);
            for (int side = 0; side < 2; ++side) {
                const Doubles gain = sums.products[side] * sums.products[side] / sums.squares[side];
                const auto better = gain > gains[side];
                gains[side] = better ? gain : gains[side];
                best.products[side] = better ? sums.products[side] : best.products[side];
                best.squares[side] = better ? sums.squares[side] : best.squares[side];
            }
        }
        const auto positive = gains[1] > gains[0];
        const Doubles scale =
            (positive ? best.products[1] : best.products[0]) / (positive ? best.squares[1] : best.squares[0]);
        const Doubles side = positive ? zero + 1.0 : zero - 1.0;
        store(best_scales, first, (extreme > 0 ? side : -side) * scale);
    }
}

/// As in quantize_q8.
std::uint16_t q8_scale(float most) noexcept {
    std::uint16_t scale = to_f16(most / 127.0f);
    if (scale < kHalfInfinity && most > 127.5f * from_f16(scale)) ++scale;
    return scale;
}

/// Lanes that are not finite become zeros, so that no comparison meets a NaN.
void clear_odd_lanes(Lanes& lanes) noexcept {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        if (lanes.not_finite[lane] == 0) continue;
        lanes.extreme[lane] = 0;
        for (std::uint32_t i = 0; i < kGroup; ++i) lanes.x[i][lane] = lanes.magnitudes[i][lane] = 0;
    }
}

void set_scale(const Lanes& lanes, std::uint32_t lane, std::uint16_t scale, Attempt& attempt) noexcept {
    attempt.scales[lane] = lanes.not_finite[lane] == 0 ? scale : kHalfNan;
    const double step = from_f16(attempt.scales[lane]);
    attempt.steps[lane] = step;
    attempt.divisors[lane] = step != 0 && std::isfinite(step) ? step : std::numeric_limits<double>::infinity();
}

template<std::uint32_t n>
FOVEA_INLINE void quantize_q8_by(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    Lanes lanes;
    Attempt attempt;
    read_lanes<n>(x, lanes);
    clear_odd_lanes(lanes);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
        set_scale(lanes, lane, q8_scale(static_cast<float>(std::fabs(lanes.extreme[lane]))), attempt);
    quantize_by_scale<n>(lanes, -127, 127, attempt);
    std::memcpy(out.scales, attempt.scales, sizeof out.scales);
    std::memcpy(out.errors, attempt.errors, sizeof out.errors);
    std::memcpy(out.totals, lanes.total, sizeof out.totals);
    for (std::uint32_t i = 0; i < kGroup; ++i)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            out.quants[i][lane] = static_cast<std::int8_t>(attempt.quants[i][lane]);
}

template<std::uint32_t n>
FOVEA_INLINE void quantize_q4_by(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    Lanes lanes;
    alignas(64) Row best_scales;
    Attempt plain, best;
    read_lanes<n>(x, lanes);
    clear_odd_lanes(lanes);
    find_q4_scales<n>(lanes, best_scales);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const double extreme = lanes.extreme[lane];
        set_scale(lanes, lane, extreme == 0 ? std::uint16_t{0} : to_f16(static_cast<float>(extreme / -8)), plain);
        set_scale(lanes, lane, extreme == 0 ? std::uint16_t{0} : to_f16(static_cast<float>(best_scales[lane])), best);
    }
    quantize_by_scale<n>(lanes, -8, 7, plain);
    quantize_by_scale<n>(lanes, -8, 7, best);
    std::int32_t takes_best[kLanes];  // all bits or none
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const bool better = std::isfinite(plain.steps[lane]) && best.errors[lane] < plain.errors[lane];
        takes_best[lane] = better ? -1 : 0;
        out.scales[lane] = (better ? best : plain).scales[lane];
        out.errors[lane] = (better ? best : plain).errors[lane];
        out.totals[lane] = lanes.total[lane];
    }
    for (std::uint32_t i = 0; i < kGroup; ++i)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            out.quants[i][lane] = static_cast<std::int8_t>((best.quants[i][lane] & takes_best[lane]) |
                                                           (plain.quants[i][lane] & ~takes_best[lane]));
}

#if defined(__x86_64__)
#define FOVEA_FOR(isa) __attribute__((target(isa)))
FOVEA_FOR("avx512f") void q8_avx512(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    quantize_q8_by<8>(x, out);
}
FOVEA_FOR("avx512f") void q4_avx512(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    quantize_q4_by<8>(x, out);
}
FOVEA_FOR("avx2") void q8_avx2(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    quantize_q8_by<4>(x, out);
}
FOVEA_FOR("avx2") void q4_avx2(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    quantize_q4_by<4>(x, out);
}
#endif

void q8_baseline(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept { quantize_q8_by<2>(x, out); }
void q4_baseline(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept { quantize_q4_by<2>(x, out); }

constexpr LaneQuantizer kQuantizers[] = {
#if defined(__x86_64__)
    {"avx512", q8_avx512, q4_avx512},
    {"avx2", q8_avx2, q4_avx2},
#endif
    {"baseline", q8_baseline, q4_baseline},
};

}  // namespace

std::span<const LaneQuantizer> lane_quantizers() noexcept { return std::span(kQuantizers).subspan(n_too_wide()); }

}  // namespace fovea
