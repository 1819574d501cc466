// Half-precision numbers and quantized ones without the instructions for them: exact, so that every machine agrees.
#pragma once
#include <bit>
#include <cstdint>

#include "format.h"

namespace fovea {

/// IEEE binary16 to binary32; exact. A NaN stays one.
[[nodiscard]] constexpr float from_f16(std::uint16_t half) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    // Shifted into place the exponent is 112 too small; one exact product puts that right, subnormals included.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

/// bfloat16 to binary32; exact.
[[nodiscard]] constexpr float from_bf16(std::uint16_t half) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// One weight at a time of a q8 or q4 panel, which is scale·quant; for its layout see panel_bytes.
struct QuantPanel {
    const std::byte* data;
    bool q8;  // otherwise q4

    /// [16] the float16 scales of the column's group.
    [[nodiscard]] const std::byte* scales(std::uint64_t col) const noexcept { return group(col, 2 * kLanes, 0); }
    [[nodiscard]] float scale(std::uint64_t col, std::uint64_t lane) const noexcept {
        std::uint16_t half;
        __builtin_memcpy(&half, scales(col) + lane * sizeof half, sizeof half);
        return from_f16(half);
    }
    /// Where the quants of the column's group start: 64 bytes for each 4 (q8) or 8 columns.
    [[nodiscard]] const std::byte* cells(std::uint64_t col) const noexcept {
        return group(col, kLanes * kGroup / (q8 ? 1 : 2), 4 * kLanes);
    }
    [[nodiscard]] std::int32_t quant(std::uint64_t col, std::uint64_t lane) const noexcept {
        const std::uint64_t i = col % kGroup;
        const auto byte = static_cast<std::uint8_t>(cells(col)[i / (q8 ? 4 : 8) * 64 + lane * 4 + i % 4]);
        return q8 ? static_cast<std::int8_t>(byte) : (i % 8 < 4 ? byte & 15 : byte >> 4) - 8;
    }

private:
    /// Of a superblock's two parts from `at` on, of `bytes` each, that of the column's group.
    [[nodiscard]] const std::byte* group(std::uint64_t col, std::uint64_t bytes, std::uint64_t at) const noexcept {
        const Type type = q8 ? Type::q8 : Type::q4;
        return data + col / kSuperblock * panel_bytes(type, kSuperblock) + at + col % kSuperblock / kGroup * bytes;
    }
};

}  // namespace fovea
