#include "convert/quantize_lanes.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "convert/elements.h"

// Each function so marked is compiled for several vector widths; the loader takes the widest that the CPU has. None
// contracts a·b + c, so all give the same bits. Sanitizers are not ready yet when the loader chooses.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer) && !__has_feature(memory_sanitizer)
#define FOVEA_EVERY_WIDTH __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#else
#define FOVEA_EVERY_WIDTH __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#endif
#if !defined(FOVEA_EVERY_WIDTH)
#define FOVEA_EVERY_WIDTH
#endif

namespace fovea {
namespace {

constexpr std::uint16_t kHalfNan = 0x7e00, kHalfInfinity = 0x7c00;
constexpr std::uint32_t kWidth = 8;                 // lanes of a vector
constexpr std::uint32_t kHalves = kLanes / kWidth;  // vectors of a column
constexpr int kFirstQuarter = 24, kLastQuarter = 40;

// The compiler's own vectors: it makes of one as many registers as it needs.
using Doubles = double __attribute__((vector_size(kWidth * sizeof(double))));
using Integers = std::int32_t __attribute__((vector_size(kWidth * sizeof(std::int32_t))));
using Bytes = std::int8_t __attribute__((vector_size(kWidth)));
using Floats = float __attribute__((vector_size(kWidth * sizeof(float))));

/// One number for each lane.
struct Row {
    Doubles half[kHalves];
    [[nodiscard]] double operator[](std::uint32_t lane) const noexcept { return half[lane / kWidth][lane % kWidth]; }
    void set(std::uint32_t lane, double value) noexcept { half[lane / kWidth][lane % kWidth] = value; }
};

struct Lanes {
    Row x[kGroup], magnitudes[kGroup];
    Row extreme;     // the element of largest magnitude, the first of several
    Row total;       // Σx²
    Row not_finite;  // 0 where all are finite, else NaN
};

struct Attempt {
    std::uint16_t scales[kLanes];
    Row steps;     // the scales as numbers
    Row divisors;  // those, or infinity where quants are to be 0
    Row errors;
    std::int8_t quants[kGroup][kLanes];
};

FOVEA_EVERY_WIDTH void read_lanes(const float (&x)[kGroup][kLanes], Lanes& lanes) noexcept {
    for (std::uint32_t h = 0; h < kHalves; ++h) {
        Doubles extreme = {}, extreme_magnitude = {}, total = {}, odd = {};
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            Floats read;
            std::memcpy(&read, &x[i][h * kWidth], sizeof read);
            const Doubles value = __builtin_convertvector(read, Doubles);
            const Doubles magnitude = value < 0 ? -value : value;
            extreme = magnitude > extreme_magnitude ? value : extreme;
            extreme_magnitude = magnitude > extreme_magnitude ? magnitude : extreme_magnitude;
            total += value * value;
            odd += value - value;  // NaN for infinity and NaN
            lanes.x[i].half[h] = value;
            lanes.magnitudes[i].half[h] = magnitude;
        }
        lanes.extreme.half[h] = extreme;
        lanes.total.half[h] = total;
        lanes.not_finite.half[h] = odd;
    }
}

/// Quants and errors with scales that are given; see with_scale and squared_error in quantize.cpp.
FOVEA_EVERY_WIDTH void quantize_by_scale(const Lanes& lanes, double least, double most, Attempt& attempt) noexcept {
    for (std::uint32_t h = 0; h < kHalves; ++h) {
        const Doubles divisor = attempt.divisors.half[h], step = attempt.steps.half[h];
        Doubles error = {};
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            const Doubles value = lanes.x[i].half[h];
            Doubles quant = value / divisor;
            quant = quant > least ? quant : least - Doubles{};
            quant = quant < most ? quant : most - Doubles{};
            quant = quant < 0 ? quant - 0.5 : quant + 0.5;
            const Integers integer = __builtin_convertvector(quant, Integers);
            const Doubles difference = value - __builtin_convertvector(integer, Doubles) * step;
            error += difference * difference;
            const Bytes bytes = __builtin_convertvector(integer, Bytes);
            std::memcpy(&attempt.quants[i][h * kWidth], &bytes, sizeof bytes);
        }
        attempt.errors.half[h] = error;
    }
}

/// As best_q4_scale in quantize.cpp, whose words hold here too. Brought to the positive side, an element's quant is at
/// most 7 if it has the extreme's sign, else 8; on the negative side it is the reverse, and magnitudes are the same. Sums are
/// exact in any order: quants other than 0 belong to elements within a factor of 20 of the extreme.
FOVEA_EVERY_WIDTH void find_q4_scales(const Lanes& lanes, Row& best_scales) noexcept {
    for (std::uint32_t h = 0; h < kHalves; ++h) {
        const Doubles extreme = lanes.extreme.half[h];
        const Doubles largest = extreme < 0 ? -extreme : extreme == 0 ? extreme + 1.0 : extreme;
        Doubles limits[kGroup];  // on the positive side
        for (std::uint32_t i = 0; i < kGroup; ++i)
            limits[i] = (lanes.x[i].half[h] < 0) == (extreme < 0) ? Doubles{} + 7.0 : Doubles{} + 8.0;
        // The negative side comes first: of equal gains the first counts.
        Doubles gains[2] = {}, products[2] = {}, squares[2] = {{}, {}};
        for (int quarters = kFirstQuarter; quarters <= kLastQuarter; ++quarters) {
            const Doubles inverse = (0.25 * quarters) / largest;
            Doubles product[2] = {}, square[2] = {};
            for (std::uint32_t i = 0; i < kGroup; ++i) {
                const Doubles magnitude = lanes.magnitudes[i].half[h], limit = limits[i];
                const Doubles raised = magnitude * inverse + 0.5;
                const Doubles nearest = (raised + 0x1p52) - 0x1p52;
                const Doubles quant = nearest > raised ? nearest - 1.0 : nearest;
                const Doubles opposite = 15.0 - limit;
                const Doubles negative = quant < opposite ? quant : opposite, positive = quant < limit ? quant : limit;
                product[0] += magnitude * negative;
                square[0] += negative * negative;
                product[1] += magnitude * positive;
                square[1] += positive * positive;
            }
            for (int side = 0; side < 2; ++side) {
                const Doubles gain = product[side] * product[side] / square[side];
                const auto better = gain > gains[side];
                gains[side] = better ? gain : gains[side];
                products[side] = better ? product[side] : products[side];
                squares[side] = better ? square[side] : squares[side];
            }
        }
        const auto positive = gains[1] > gains[0];
        const Doubles scale = (positive ? products[1] : products[0]) / (positive ? squares[1] : squares[0]);
        best_scales.half[h] = positive == (extreme > 0) ? scale : -scale;
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
        lanes.extreme.set(lane, 0);
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            lanes.x[i].set(lane, 0);
            lanes.magnitudes[i].set(lane, 0);
        }
    }
}

/// Scale of the lanes whose elements are finite: scale_of(lane).
template<class ScaleOf>
void try_scales(const Lanes& lanes, double least, double most, Attempt& attempt, ScaleOf scale_of) noexcept {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        attempt.scales[lane] = lanes.not_finite[lane] == 0 ? scale_of(lane) : kHalfNan;
        const double step = from_f16(attempt.scales[lane]);
        attempt.steps.set(lane, step);
        attempt.divisors.set(lane, step != 0 && std::isfinite(step) ? step : std::numeric_limits<double>::infinity());
    }
    quantize_by_scale(lanes, least, most, attempt);
}

}  // namespace

void quantize_lanes_q8(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    Lanes lanes;
    Attempt attempt;
    read_lanes(x, lanes);
    clear_odd_lanes(lanes);
    try_scales(lanes, -127, 127, attempt,
               [&](std::uint32_t lane) { return q8_scale(static_cast<float>(std::fabs(lanes.extreme[lane]))); });
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        out.scales[lane] = attempt.scales[lane];
        out.errors[lane] = attempt.errors[lane];
        out.totals[lane] = lanes.total[lane];
    }
    std::memcpy(out.quants, attempt.quants, sizeof out.quants);
}

void quantize_lanes_q4(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept {
    Lanes lanes;
    Row best_scales;
    Attempt plain, best;
    read_lanes(x, lanes);
    clear_odd_lanes(lanes);
    find_q4_scales(lanes, best_scales);
    try_scales(lanes, -8, 7, plain, [&](std::uint32_t lane) {
        return lanes.extreme[lane] == 0 ? std::uint16_t{0} : to_f16(static_cast<float>(lanes.extreme[lane] / -8));
    });
    try_scales(lanes, -8, 7, best, [&](std::uint32_t lane) {
        return lanes.extreme[lane] == 0 ? std::uint16_t{0} : to_f16(static_cast<float>(best_scales[lane]));
    });
    std::int8_t takes_best[kLanes];  // all bits or none
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

}  // namespace fovea
