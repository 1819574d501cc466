// One weight of a quantized panel, written from the words of docs/format.md and not with the engine's own reader.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "fovea/config.h"
#include "host/base/elements.h"

namespace fovea::testing {

inline float half_at(const std::byte* at) {
    std::uint16_t half;
    std::memcpy(&half, at, sizeof half);
    return from_f16(half);
}
inline float bfloat_at(const std::byte* at) {
    std::uint16_t half;
    std::memcpy(&half, at, sizeof half);
    return from_bf16(half);
}
inline int signed_at(const std::byte* at) { return static_cast<std::int8_t>(*at); }

/// Column `col` of row `lane` of a quantized panel, as docs/format.md has it.
inline float panel_element(Type type, const std::byte* panel, std::uint32_t lane, std::uint32_t col) {
    struct Layout {
        std::uint32_t bits, head, scales,
            minima;  // bytes of 256 (q8_128: 128) columns' factors; of 64 columns' scales and minima
    };
    const std::map<Type, Layout> layouts = {
        {Type::q8, {8, 0, 64, 0}},      {Type::q4, {4, 0, 64, 0}},     {Type::q6_k, {6, 64, 64, 0}},
        {Type::q5_k, {5, 64, 32, 32}},  {Type::q4_k, {4, 64, 32, 32}}, {Type::iq4_nl, {4, 0, 64, 0}},
        {Type::mxfp4, {4, 0, 64, 0}},   {Type::q3_k, {3, 64, 64, 0}},  {Type::q2_k, {2, 64, 64, 0}},
        {Type::iq4_xs, {4, 64, 32, 0}}, {Type::tq2_0, {2, 64, 0, 0}},  {Type::q8_128, {8, 64, 0, 0}},
        {Type::q5, {5, 0, 64, 0}},      {Type::q4_1, {4, 0, 64, 64}},  {Type::q5_1, {5, 0, 64, 64}}};
    const Layout l = layouts.at(type);
    const std::uint32_t unit_bytes = l.scales + l.minima + 128 * l.bits, unit = col / 64;
    const std::uint32_t n_units = type == Type::q8_128 ? 2 : 4;
    const std::byte* head = panel + unit / n_units * (l.head + n_units * unit_bytes);
    const std::byte* block = head + l.head + unit % n_units * unit_bytes;
    const std::uint32_t group = col / 32 % 2, i = col % 32;
    const std::byte* quants = block + l.scales + l.minima + group * 64 * l.bits + lane * 4 + i % 4;
    if (l.bits == 8) {
        const std::byte* scale = type == Type::q8_128 ? head + lane * 2 : block + (group * 16 + lane) * 2;
        return static_cast<float>(signed_at(quants + i / 4 * 64)) * half_at(scale);
    }
    int quant = l.bits <= 3 ? std::to_integer<int>(quants[i / 16 * 64]) >> i / 4 % 4 * 2 & 3
                            : std::to_integer<int>(quants[i / 8 * 64]) >> (i % 8 < 4 ? 0 : 4) & 15;
    if (l.bits == 3) quant |= (std::to_integer<int>(quants[128]) >> i / 4 & 1) << 2;
    if (l.bits == 6) quant |= (std::to_integer<int>(quants[256 + i / 16 * 64]) >> i / 4 % 4 * 2 & 3) << 4;
    if (l.bits == 5) quant |= (std::to_integer<int>(quants[256]) >> i / 4 & 1) << 4;
    constexpr int kNonlinear[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    constexpr int kFloats[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const std::byte* scale = block + (group * 16 + lane) * 2;
    switch (type) {
        case Type::q4: return static_cast<float>(quant - 8) * half_at(scale);
        case Type::q5: return static_cast<float>(quant - 16) * half_at(scale);
        case Type::q4_1:
        case Type::q5_1: return static_cast<float>(quant) * half_at(scale) - half_at(scale + 64);
        case Type::iq4_nl: return static_cast<float>(kNonlinear[quant]) * half_at(scale);
        case Type::mxfp4: return static_cast<float>(kFloats[quant]) * bfloat_at(scale);
        case Type::tq2_0: return static_cast<float>(quant - 1) * half_at(head + lane * 2);
        case Type::iq4_xs: {
            const auto multiple = static_cast<float>(signed_at(block + group * 16 + lane));
            return half_at(head + lane * 2) * multiple * static_cast<float>(kNonlinear[quant]);
        }
        case Type::q2_k: {
            const int both = std::to_integer<int>(block[(group * 2 + i / 16) * 16 + lane]);
            return half_at(head + lane * 2) * static_cast<float>(both & 15) * static_cast<float>(quant) -
                   half_at(head + 32 + lane * 2) * static_cast<float>(both >> 4);
        }
        case Type::q3_k:
        case Type::q6_k: {
            const auto multiple = static_cast<float>(signed_at(block + (group * 2 + i / 16) * 16 + lane));
            return half_at(head + lane * 2) * multiple * static_cast<float>(quant - (type == Type::q6_k ? 32 : 4));
        }
        default: {
            const auto multiple = static_cast<float>(signed_at(block + group * 16 + lane));
            const auto minimum = static_cast<float>(signed_at(block + 32 + group * 16 + lane));
            return half_at(head + lane * 2) * multiple * static_cast<float>(quant) -
                   half_at(head + 32 + lane * 2) * minimum;
        }
    }
}

}  // namespace fovea::testing
