// Numbers as files store them: float32 to and from float16 and bfloat16, by their bits, the same on any host.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/format/half.h"
#include "fovea/type.h"

namespace fovea {

inline constexpr std::uint16_t kHalfNan = 0x7e00, kHalfInfinity = 0x7c00, kBfloatNan = 0x7fc0;

/// Element `index` of numbers that are f32, f16 or bf16, in any alignment.
[[nodiscard]] inline float load_element(const std::byte* data, Type type, std::uint64_t index) noexcept {
    if (type == Type::f32) {
        float value;
        std::memcpy(&value, data + index * sizeof value, sizeof value);
        return value;
    }
    std::uint16_t bits;
    std::memcpy(&bits, data + index * sizeof bits, sizeof bits);
    return type == Type::f16 ? from_f16(bits) : from_bf16(bits);
}

/// Nearest, ties to even; beyond the range infinity; every NaN becomes one.
[[nodiscard]] constexpr std::uint16_t to_f16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7e00;
    if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 2^16 and more
    if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);             // less than half of 2^-24
    std::uint32_t kept, shift, rest;
    if (magnitude < 0x38800000u) {  // below 2^-14: how many units of 2^-24
        rest = (magnitude & 0x7fffffu) | 0x800000u;
        shift = 126 - (magnitude >> 23);
    } else {
        rest = magnitude - (112u << 23);
        shift = 13;
    }
    kept = rest >> shift;
    const std::uint32_t half = 1u << (shift - 1);
    rest &= (1u << shift) - 1;
    kept += rest > half || (rest == half && (kept & 1));
    return static_cast<std::uint16_t>(sign | kept);
}

/// Nearest, ties to even; every NaN becomes one.
[[nodiscard]] constexpr std::uint16_t to_bf16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace fovea
