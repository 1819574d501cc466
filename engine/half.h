// Half-precision numbers without the instructions for them: exact, so that every machine agrees.
#pragma once
#include <bit>
#include <cstdint>

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

}  // namespace fovea
