#include "convert/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convert/quantize/factor_formats.h"
#include "convert/quantize/format_lanes.h"
#include "convert/quantize/quantize_lanes.h"
#include "host/base/elements.h"

namespace fovea {
namespace {

/// Nearest integer within [least, most]; halves go away from zero.
int rounded(double x, int least, int most) noexcept {
    if (!(x > least)) return least;
    if (!(x < most)) return most;
    return static_cast<int>(x < 0 ? x - 0.5 : x + 0.5);
}

/// The element of largest magnitude, the first of several.
float extreme(const float (&x)[kGroup]) noexcept {
    float most = 0.0f;
    for (const float value : x)
        if (std::fabs(value) > std::fabs(most)) most = value;
    return most;
}

bool is_finite(const float (&x)[kGroup]) noexcept {
    return std::all_of(std::begin(x), std::end(x), [](float value) { return std::isfinite(value); });
}

/// The group's quants with a scale that is given.
QuantizedGroup with_scale(const float (&x)[kGroup], std::uint16_t scale, int least, int most) noexcept {
    QuantizedGroup group{.scale = scale};
    const double step = from_f16(scale);
    if (step != 0 && std::isfinite(step))
        for (std::size_t i = 0; i < kGroup; ++i)
            group.quants[i] = static_cast<std::int8_t>(rounded(x[i] / step, least, most));
    return group;
}

double squared_error(const float (&x)[kGroup], const QuantizedGroup& group) noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
        const double difference = x[i] - static_cast<double>(group.quants[i]) * from_f16(group.scale);
        sum += difference * difference;
    }
    return sum;
}

/// For quants q the best scale is Σxq / Σq²; it lowers the squared error Σx² by (Σxq)² / Σq². Tries to bring the
/// extreme to 6, 6.25, ... 10 on either side and returns the best scale found.
double best_q4_scale(const float (&x)[kGroup], double most) noexcept {
    double best = 0, best_gain = 0;
    for (int side = -1; side <= 1; side += 2)
        for (int quarters = 24; quarters <= 40; ++quarters) {
            const double inverse = side * (0.25 * quarters) / most;
            double products = 0, squares = 0;
            for (const float value : x) {
                const double quant = rounded(value * inverse, -8, 7);
                products += value * quant;
                squares += quant * quant;
            }
            const double gain = products * products / squares;  // some quant is at least 6 away from 0
            if (gain > best_gain) {
                best_gain = gain;
                best = products / squares;
            }
        }
    return best;
}

/// put_group of sixteen lanes at once, of q8 or q4.
void put_lanes(Type type, const QuantizedLanes& lanes, std::uint32_t index, std::byte* panel) noexcept {
    const bool q8 = type == Type::q8;
    panel += index / 2 * panel_bytes(type, kSuperblock);
    std::memcpy(panel + index % 2 * sizeof lanes.scales, lanes.scales, sizeof lanes.scales);
    std::byte* quants = panel + 4 * kLanes + index % 2 * kLanes * (q8 ? kGroup : kGroup / 2);
    const std::uint32_t n_cols = q8 ? 4 : 8;  // of 64 bytes
    for (std::uint32_t col = 0; col < kGroup; col += n_cols, quants += 4 * kLanes)
        for (std::uint32_t i = 0; i < 4; ++i)
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                const int low = lanes.quants[col + i][lane];
                const int byte = q8 ? low : (low + 8) | (lanes.quants[col + 4 + i][lane] + 8) << 4;
                quants[lane * 4 + i] = static_cast<std::byte>(byte);
            }
}

}  // namespace

Type stored_type(const TensorSpec& spec, Type wanted, bool exact_tables) noexcept {
    const bool routes = spec.role == Role::router || spec.role == Role::shared_gate;
    if (spec.layout == Layout::vector || spec.role == Role::relative_bias || routes) return Type::f32;
    const bool convolves = spec.role == Role::first_convolution || spec.role == Role::second_convolution;
    if (convolves && is_quantized(wanted)) return Type::f16;  // all that follows is made of them, and they are few
    const bool of_distances = spec.role == Role::distance_keys || spec.role == Role::distance_queries;
    if (of_distances && is_quantized(wanted)) return Type::f16;  // added to every score of a layer
    if (spec.layout == Layout::rows && is_quantized(wanted)) return exact_tables ? Type::f32 : Type::f16;
    const bool output = spec.role == Role::output || spec.role == Role::token_embedding;
    if (!output || !is_quantized(wanted) || format_of(wanted).bits > 5) return wanted;
    return wanted == Type::q4 ? Type::q8 : Type::q6_k;
}

QuantizedGroup quantize_q8(const float (&x)[kGroup]) noexcept {
    if (!is_finite(x)) return {.scale = kHalfNan};
    const float most = std::fabs(extreme(x));
    std::uint16_t scale = to_f16(most / 127.0f);
    // If float16 is coarse (below 2^-14) the nearest scale may be too small for the extreme; the next is not.
    if (scale < kHalfInfinity && most > 127.5f * from_f16(scale)) ++scale;
    return with_scale(x, scale, -127, 127);
}

QuantizedGroup quantize_q4(const float (&x)[kGroup]) noexcept {
    if (!is_finite(x)) return {.scale = kHalfNan};
    const double most = extreme(x);
    if (most == 0) return {};
    const QuantizedGroup plain = with_scale(x, to_f16(static_cast<float>(most / -8)), -8, 7);
    const QuantizedGroup best = with_scale(x, to_f16(static_cast<float>(best_q4_scale(x, most))), -8, 7);
    if (!std::isfinite(from_f16(plain.scale))) return plain;
    return squared_error(x, best) < squared_error(x, plain) ? best : plain;
}

namespace {

QuantLoss quantize_format_panel(Type type, const float* rows, std::uint32_t n_cols, std::byte* panel) noexcept {
    const FormatQuantizer& quantizer = format_quantizers().front();
    QuantLoss loss;
    for (std::uint32_t col = 0; col < n_cols; col += kFactorColumns) {
        const std::uint32_t n = std::min(kFactorColumns, n_cols - col);
        float x[kFactorColumns][kLanes];
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            for (std::uint32_t i = 0; i < n; ++i) x[i][lane] = rows[std::size_t{lane} * n_cols + col + i];
        FormatLanes lanes;
        quantizer.quantize(type, x, n, lanes);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            for (std::uint32_t i = 0; i < n; i += kGroup)
                put_group(type, lanes.groups[i / kGroup][lane], lane, (col + i) / kGroup, panel);
            loss.error += lanes.errors[lane];
            loss.total += lanes.totals[lane];
        }
        loss.overflow |= lanes.overflow;
    }
    return loss;
}

}  // namespace

QuantLoss quantize_panel(Type type, const float* rows, std::uint32_t n_cols, std::byte* panel) noexcept {
    if (type != Type::q8 && type != Type::q4) return quantize_format_panel(type, rows, n_cols, panel);
    const LaneQuantizer& quantizer = lane_quantizers().front();
    double errors[kLanes] = {}, totals[kLanes] = {};
    QuantLoss loss;
    for (std::uint32_t col = 0; col < n_cols; col += kGroup) {
        float x[kGroup][kLanes] = {};
        const std::uint32_t n = std::min(kGroup, n_cols - col);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            for (std::uint32_t i = 0; i < n; ++i) x[i][lane] = rows[std::size_t{lane} * n_cols + col + i];
        QuantizedLanes lanes;
        type == Type::q8 ? quantizer.q8(x, lanes) : quantizer.q4(x, lanes);
        put_lanes(type, lanes, col / kGroup, panel);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            loss.overflow |= (lanes.scales[lane] & 0x7fff) == kHalfInfinity;
            errors[lane] += lanes.errors[lane];
            totals[lane] += lanes.totals[lane];
        }
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        loss.error += errors[lane];
        loss.total += totals[lane];
    }
    return loss;
}

void put_panel(Type type, const QuantizedGroup* groups, std::uint32_t n_groups, std::byte* panel) noexcept {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
        for (std::uint32_t i = 0; i < n_groups; ++i) put_group(type, *groups++, lane, i, panel);
}

}  // namespace fovea
