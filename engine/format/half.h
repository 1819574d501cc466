// Half-precision numbers and quantized ones without the instructions for them: exact, so that every machine agrees.
#pragma once
#include <bit>
#include <cstdint>

#include "engine/format/panel.h"
#include "engine/format/parts.h"

namespace fovea {

/// IEEE binary16 to binary32; exact. A NaN stays one.
[[nodiscard]] constexpr float from_f16(std::uint16_t half) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7fffu;
    // Shifted into place the exponent is 112 too small; one exact product puts that right, subnormals included.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const std::uint32_t not_finite = magnitude >= 0x7c00u ? 0x7f800000u : 0;
    return std::bit_cast<float>(sign | not_finite | std::bit_cast<std::uint32_t>(scaled));
}

/// bfloat16 to binary32; exact.
[[nodiscard]] constexpr float from_bf16(std::uint16_t half) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// One weight at a time of a quantized panel: scale·quant − minimum. For its layout see QuantFormat.
struct QuantPanel {
    const std::byte* data;
    const QuantFormat& format;

    QuantPanel(const std::byte* panel, Type type) noexcept : data(panel), format(format_of(type)) {}

    [[nodiscard]] float scale(std::uint64_t col, std::uint64_t lane) const noexcept {
        if (kAllFormats && format.scale == QuantScale::alone) return factor(col, lane);
        if (kAllFormats && format.factors()) return factor(col, lane) * static_cast<float>(low(scales(col)[lane]));
        const std::uint16_t bits = half(scales(col) + lane * 2);
        return !kAllFormats || format.scale == QuantScale::f16 ? from_f16(bits) : from_bf16(bits);
    }
    [[nodiscard]] float minimum(std::uint64_t col, std::uint64_t lane) const noexcept {
        if (!kAllFormats || !format.minima) return 0.0f;
        if (!format.factors()) return from_f16(half(minima(col) + lane * 2));
        return factor(col, kLanes + lane) * static_cast<float>(high(minima(col)[lane]));
    }
    [[nodiscard]] std::int32_t quant(std::uint64_t col, std::uint64_t lane) const noexcept {
        const std::uint64_t i = col % kGroup;
        const std::byte* at = quants(col) + lane * 4 + i % 4;
        if (format.bits == 8) return static_cast<std::int8_t>(at[i / 4 * 64]);
        if (kAllFormats && format.bits <= 3) {
            const std::uint32_t two = std::uint32_t(at[i / 16 * 64]) >> i / 4 % 4 * 2 & 3u;
            const std::uint32_t third = format.bits == 3 ? std::uint32_t(at[128]) >> i / 4 & 1u : 0;
            return static_cast<std::int32_t>(two | third << 2) - format.zero;
        }
        std::uint32_t stored = std::uint32_t(at[i / 8 * 64]) >> (i % 8 < 4 ? 0 : 4) & 15u;
        if (!kAllFormats) return static_cast<std::int32_t>(stored) - format.zero;
        if (format.bits == 6) stored |= (std::uint32_t(at[256 + i / 16 * 64]) >> i / 4 % 4 * 2 & 3u) << 4;
        if (format.bits == 5) stored |= (std::uint32_t(at[256]) >> i / 4 & 1u) << 4;
        return format.codebook ? format.codebook[stored] : static_cast<std::int32_t>(stored) - format.zero;
    }
    [[nodiscard]] float weight(std::uint64_t col, std::uint64_t lane) const noexcept {
        const float product = scale(col, lane) * static_cast<float>(quant(col, lane));
        return kAllFormats && format.minima ? product - minimum(col, lane) : product;
    }
    /// Where the quants of the column's 32 start.
    [[nodiscard]] const std::byte* quants(std::uint64_t col) const noexcept {
        return unit(col) + format.quants_at() + col % kSuperblock / kGroup * format.group_bytes();
    }
    /// Where the scales of the column's group start, and its minima.
    [[nodiscard]] const std::byte* scales(std::uint64_t col) const noexcept {
        return unit(col) + group(col) * kLanes * format.scale_bytes();
    }
    [[nodiscard]] const std::byte* minima(std::uint64_t col) const noexcept {
        return unit(col) + format.minima_at() + group(col) * kLanes * format.minimum_bytes();
    }
    /// Where the factors over the column start: those of scales, then those of minima.
    [[nodiscard]] const std::byte* factors(std::uint64_t col) const noexcept {
        return data + format.head_at(col / kSuperblock);
    }

private:
    static constexpr bool kAllFormats = has(Part::gguf_types);  // q8 and q4 know no more than a scale and a zero

    [[nodiscard]] const std::byte* unit(std::uint64_t col) const noexcept {
        return data + format.unit_at(col / kSuperblock);
    }
    [[nodiscard]] std::uint64_t group(std::uint64_t col) const noexcept {
        return col % kSuperblock / format.scale_columns;
    }
    [[nodiscard]] static std::uint16_t half(const std::byte* at) noexcept {
        std::uint16_t bits;
        __builtin_memcpy(&bits, at, sizeof bits);
        return bits;
    }
    [[nodiscard]] float factor(std::uint64_t col, std::uint64_t i) const noexcept {
        return from_f16(half(factors(col) + i * 2));
    }
    /// Scale and minimum of a byte: all of it, or four bits each.
    [[nodiscard]] std::int32_t low(std::byte byte) const noexcept {
        return format.scale == QuantScale::nibble ? static_cast<int>(byte) & 15 : static_cast<std::int8_t>(byte);
    }
    [[nodiscard]] std::int32_t high(std::byte byte) const noexcept {
        return format.scale == QuantScale::nibble ? static_cast<int>(byte) >> 4 : static_cast<std::int8_t>(byte);
    }
};

}  // namespace fovea
