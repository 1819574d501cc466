#include "convert/quantize/factor_formats.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "host/base/elements.h"

namespace fovea {

void put_group(Type type, const QuantizedGroup& group, std::uint32_t lane, std::uint32_t index,
               std::byte* panel) noexcept {
    const QuantFormat& format = format_of(type);
    std::byte* const head = panel + format.head_at(index / 2);
    std::byte* const unit = panel + format.unit_at(index / 2);
    const std::uint32_t parts = format.broad() ? 1 : kGroup / format.scale_columns, of_unit = index % 2 * parts;
    if (format.factors()) {
        std::memcpy(head + lane * 2, &group.scale, 2);
        if (format.minima) std::memcpy(head + (kLanes + lane) * 2, &group.minimum_factor, 2);
        for (std::uint32_t i = 0; i < parts && format.scale != QuantScale::alone; ++i) {
            std::byte& scale = unit[(of_unit + i) * kLanes + lane];
            scale = static_cast<std::byte>(group.scales[i]);
            if (format.scale == QuantScale::nibble)
                scale |= static_cast<std::byte>(group.minima[i] << 4);
            else if (format.minima)
                unit[format.minima_at() + (of_unit + i) * kLanes + lane] = static_cast<std::byte>(group.minima[i]);
        }
    } else {
        std::memcpy(unit + (of_unit * kLanes + lane) * 2, &group.scale, 2);
        if (format.minima)
            std::memcpy(unit + format.minima_at() + (of_unit * kLanes + lane) * 2, &group.minimum_factor, 2);
    }
    std::byte* const quants = unit + format.quants_at() + index % 2 * format.group_bytes() + lane * 4;
    for (std::uint32_t i = 0; i < kGroup; ++i) {
        const auto quant = static_cast<std::uint32_t>(group.quants[i] + format.zero);
        const auto put = [&](std::uint32_t at, std::uint32_t bits) {
            quants[at + i % 4] |= static_cast<std::byte>(bits & 0xff);
        };
        if (format.bits == 8) {
            put(i / 4 * 64, quant);
            continue;
        }
        if (format.bits <= 3) {
            put(i / 16 * 64, (quant & 3) << i / 4 % 4 * 2);
            if (format.bits == 3) put(128, (quant >> 2) << i / 4);
            continue;
        }
        put(i / 8 * 64, (quant & 15) << (i % 8 < 4 ? 0 : 4));
        if (format.bits == 6) put(256 + i / 16 * 64, (quant >> 4) << i / 4 % 4 * 2);
        if (format.bits == 5) put(256, (quant >> 4) << i / 4);
    }
}

namespace {

/// The whole number nearest to x, halves upwards, of those in the range; `least` for NaN. Without a call or a
/// branch, for much of a calibration's time is spent here.
int clamped(double x, int least, int most) noexcept {
    x = x > least ? x : least;
    x = x < most ? x : most;
    x += 0.5;
    const int cut = static_cast<int>(x);
    return cut - (x < cut);
}

/// IQ4_NL's codebook ascends by 11 and more, so at most one midpoint of two entries is near a whole number, and one
/// comparison says on which side of it x is.
struct Middles {
    double at[16];            ///< between an entry and the next; infinite behind the last
    std::uint8_t below[256];  ///< how many are at most i − 129, and so below any x whose x + 128 is cut to i

    constexpr Middles() noexcept : at(), below() {
        for (int i = 0; i < 15; ++i) at[i] = (kNonlinear4[i] + kNonlinear4[i + 1]) / 2.0;
        at[15] = std::numeric_limits<double>::infinity();
        for (int i = 0; i < 256; ++i)
            while (at[below[i]] <= i - 129) ++below[i];
    }
};
constexpr Middles kMiddles;

/// The number of what is nearest in a codebook, the first of two as near; 0 for NaN.
std::int8_t nearest(const std::int8_t* codebook, double x) noexcept {
    if (codebook == kNonlinear4) {
        x = x > -128 ? x : -128;
        x = x < 127 ? x : 127;
        const int n = kMiddles.below[static_cast<int>(x + 128)];  // x + 128 may be rounded up to a whole number
        return static_cast<std::int8_t>(n + (x > kMiddles.at[n]));
    }
    int best = 0;
    for (int i = 1; i < 16; ++i)
        if (std::fabs(x - codebook[i]) < std::fabs(x - codebook[best])) best = i;
    return static_cast<std::int8_t>(best);
}

double scale_of(const QuantFormat& format, const QuantizedGroup& group, std::uint32_t i) noexcept {
    const double scale = format.scale == QuantScale::bf16 ? from_bf16(group.scale) : from_f16(group.scale);
    return format.factors() ? scale * group.scales[i / format.scale_columns] : scale;
}

double minimum_of(const QuantFormat& format, const QuantizedGroup& group, std::uint32_t i) noexcept {
    if (!format.minima) return 0;
    const double factor = from_f16(group.minimum_factor);
    return format.factors() ? factor * group.minima[i / format.scale_columns] : factor;
}

}  // namespace

std::int8_t nearest_quant(Type type, const QuantizedGroup& group, std::uint32_t i, double x) noexcept {
    const QuantFormat& format = format_of(type);
    const double scale = scale_of(format, group, i), minimum = minimum_of(format, group, i);
    if (scale == 0 || !std::isfinite((x + minimum) / scale)) return 0;
    if (format.codebook) return nearest(format.codebook, x / scale);
    const QuantRange range = quant_range(type);
    return static_cast<std::int8_t>(clamped((x + minimum) / scale, range.least, range.most));
}

double element_of(Type type, const QuantizedGroup& group, std::uint32_t i) noexcept {
    const QuantFormat& format = format_of(type);
    const double quant = format.codebook ? format.codebook[group.quants[i]] : group.quants[i];
    return scale_of(format, group, i) * quant - minimum_of(format, group, i);
}

}  // namespace fovea
