#include "convert/formats/gguf_blocks.h"

#include <algorithm>
#include <cstring>

#include "convert/formats/mxfp4.h"
#include "host/base/elements.h"

// Formats: ggml's block structs. One scale and perhaps one minimum for 32 elements (_0, _1), or superblocks of 256
// elements with two float16 factors over small integers for each 16 or 32 (_K). Compiled without contraction: each
// product and sum below is rounded.
namespace fovea {
namespace {

constexpr std::uint32_t kSmall = 32, kLarge = 256;

std::uint16_t bits_at(const std::byte* at) {
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return bits;
}

/// Nibble i of 2n that lie in n bytes: the low ones first, then the high ones.
int nibble(const std::byte* bytes, std::uint32_t i, std::uint32_t n) {
    const int both = std::to_integer<int>(bytes[i % n]);
    return i < n ? both & 15 : both >> 4;
}

int bit(const std::byte* bytes, std::uint32_t i) { return std::to_integer<int>(bytes[i / 8]) >> i % 8 & 1; }

/// Element i of 4 or 5 bits; unsigned with a minimum, or signed around the middle.
template<bool five, bool minimum>
int quant_small(const std::byte* block, std::uint32_t i) {
    const std::byte* fifth = block + (minimum ? 4 : 2);
    const int quant = nibble(fifth + (five ? 4 : 0), i, kSmall / 2) | (five ? bit(fifth, i) << 4 : 0);
    return minimum ? quant : quant - (five ? 16 : 8);
}

/// Factor `i` of 8 for scales and for minima, 6 bits each in 12 bytes: the first four of both are the low bits of their
/// bytes, the last four nibbles of bytes 8 to 11 under two bits from above the first.
void unpack_factors(const std::byte* packed, std::uint32_t i, std::int8_t& scale, std::int8_t& minimum) {
    const auto at = [&](std::uint32_t j) { return std::to_integer<int>(packed[j]); };
    scale = static_cast<std::int8_t>(i < 4 ? at(i) & 63 : (at(i + 4) & 15) | at(i - 4) >> 6 << 4);
    minimum = static_cast<std::int8_t>(i < 4 ? at(i + 4) & 63 : at(i + 4) >> 4 | at(i) >> 6 << 4);
}

/// Element i of a block of Q6_K, less 32.
int quant_q6_k(const std::byte* block, std::uint32_t i) {
    const std::uint32_t half = i / 128, within = i % 128;
    const int low = nibble(block + half * 64, within, 64);
    const int high = std::to_integer<int>(block[128 + half * 32 + within % 32]) >> within / 32 * 2 & 3;
    return (low | high << 4) - 32;
}

/// Element i of a block of Q3_K, less 4, and the scale of its sixteen: four bits of it are a nibble, two lie above.
int quant_q3_k(const std::byte* block, std::uint32_t i) {
    const std::uint32_t half = i / 128, quarter = i % 128 / 32;
    const int low = std::to_integer<int>(block[32 + half * 32 + i % 32]) >> quarter * 2 & 3;
    return (low | (std::to_integer<int>(block[i % 32]) >> (half * 4 + quarter) & 1) << 2) - 4;
}
int scale_q3_k(const std::byte* block, std::uint32_t i) {
    const std::byte* packed = block + 96;
    return (nibble(packed, i, 8) | (std::to_integer<int>(packed[8 + i % 4]) >> i / 4 * 2 & 3) << 4) - 32;
}

void take_apart_q3_k(const std::byte* block, QuantizedGroup* out) {
    for (std::uint32_t i = 0; i < kLarge; ++i) {
        QuantizedGroup& group = out[i / kGroup];
        group.scale = bits_at(block + 108);
        group.scales[i % kGroup / 16] = static_cast<std::int8_t>(scale_q3_k(block, i / 16));
        group.quants[i % kGroup] = static_cast<std::int8_t>(quant_q3_k(block, i));
    }
}

/// A byte for each sixteen elements: four bits of scale, four of minimum. Quants lie as the lower bits of Q3_K's do.
void take_apart_q2_k(const std::byte* block, QuantizedGroup* out) {
    for (std::uint32_t i = 0; i < kLarge; ++i) {
        QuantizedGroup& group = out[i / kGroup];
        const int both = std::to_integer<int>(block[i / 16]);
        group.scale = bits_at(block + 80);
        group.minimum_factor = bits_at(block + 82);
        group.scales[i % kGroup / 16] = static_cast<std::int8_t>(both & 15);
        group.minima[i % kGroup / 16] = static_cast<std::int8_t>(both >> 4);
        const int quant = std::to_integer<int>(block[16 + i / 128 * 32 + i % 32]) >> i % 128 / 32 * 2 & 3;
        group.quants[i % kGroup] = static_cast<std::int8_t>(quant);
    }
}

/// As blocks of IQ4_NL, with six bits of scale for each under one float16: four in nibbles, two in a word before them.
void take_apart_iq4_xs(const std::byte* block, QuantizedGroup* out) {
    for (std::uint32_t i = 0; i < kLarge / kGroup; ++i) {
        const int low = std::to_integer<int>(block[4 + i / 2]) >> i % 2 * 4 & 15,
                  high = bits_at(block + 2) >> 2 * i & 3;
        out[i].scale = bits_at(block);
        out[i].scales[0] = static_cast<std::int8_t>((low | high << 4) - 32);
        for (std::uint32_t k = 0; k < kGroup; ++k)
            out[i].quants[k] = static_cast<std::int8_t>(nibble(block + 8 + i * kGroup / 2, k, kGroup / 2));
    }
}

/// Digit i of five to the base of three that a byte holds as a fraction of 256.
int digit(std::byte byte, std::uint32_t i) {
    constexpr int kPowers[] = {1, 3, 9, 27, 81};
    return (std::to_integer<int>(byte) * kPowers[i] & 255) * 3 >> 8;
}

/// Five elements in a byte: elements 0 to 159 digit after digit of 32 bytes, those to 239 of 16, the last 16 four in a byte.
int quant_tq1_0(const std::byte* block, std::uint32_t i) {
    if (i < 160) return digit(block[i % 32], i / 32) - 1;
    if (i < 240) return digit(block[32 + (i - 160) % 16], (i - 160) / 16) - 1;
    return digit(block[48 + (i - 240) % 4], (i - 240) / 4) - 1;
}
int quant_tq2_0(const std::byte* block, std::uint32_t i) {
    return (std::to_integer<int>(block[i / 128 * 32 + i % 32]) >> i % 128 / 32 * 2 & 3) - 1;
}

template<int (*quant)(const std::byte*, std::uint32_t), std::uint32_t scale_at>
void take_apart_ternary(const std::byte* block, QuantizedGroup* out) {
    for (std::uint32_t i = 0; i < kLarge; ++i) {
        out[i / kGroup].scale = bits_at(block + scale_at);
        out[i / kGroup].scales = {1, 1};
        out[i / kGroup].quants[i % kGroup] = static_cast<std::int8_t>(quant(block, i));
    }
}

/// bitnet.cpp's: quarters of the elements in two bits each, the first in the upper ones. The tensor has one scale.
void dequantize_i2_s(const std::byte* block, float* out) {
    for (std::uint32_t i = 0; i < 128; ++i)
        out[i] = static_cast<float>((std::to_integer<int>(block[i % 32]) >> (6 - i / 32 * 2) & 3) - 1);
}

void take_apart_q8_0(const std::byte* block, QuantizedGroup* out) {
    out->scale = bits_at(block);
    std::memcpy(out->quants.data(), block + 2, kSmall);
}

/// A minimum is added here and taken away there, so its sign is turned.
template<bool five, bool minimum>
void take_apart_small(const std::byte* block, QuantizedGroup* out) {
    out->scale = bits_at(block);
    if (minimum) out->minimum_factor = bits_at(block + 2) ^ 0x8000;
    for (std::uint32_t i = 0; i < kSmall; ++i)
        out->quants[i] = static_cast<std::int8_t>(quant_small<five, minimum>(block, i));
}

template<bool five>
void take_apart_k45(const std::byte* block, QuantizedGroup* out) {
    const std::byte* fifth = block + 16;
    const std::byte* nibbles = fifth + (five ? kLarge / 8 : 0);
    for (std::uint32_t group = 0; group < 8; ++group, ++out) {
        unpack_factors(block + 4, group, out->scales[0], out->minima[0]);
        out->scale = bits_at(block);
        out->minimum_factor = bits_at(block + 2);
        for (std::uint32_t i = 0; i < 32; ++i) {
            const int high = five ? std::to_integer<int>(fifth[i]) >> group & 1 : 0;
            out->quants[i] =
                static_cast<std::int8_t>(nibble(nibbles + group / 2 * 32, group % 2 * 32 + i, 32) | high << 4);
        }
    }
}

void take_apart_q6_k(const std::byte* block, QuantizedGroup* out) {
    const std::byte* scales = block + kLarge / 2 + kLarge / 4;
    for (std::uint32_t i = 0; i < kLarge; ++i) {
        QuantizedGroup& group = out[i / kGroup];
        group.scale = bits_at(scales + 16);
        group.scales[i % kGroup / 16] = static_cast<std::int8_t>(scales[i / 16]);
        group.quants[i % kGroup] = static_cast<std::int8_t>(quant_q6_k(block, i));
    }
}

void take_apart_iq4_nl(const std::byte* block, QuantizedGroup* out) {
    out->scale = bits_at(block);
    for (std::uint32_t i = 0; i < kSmall; ++i)
        out->quants[i] = static_cast<std::int8_t>(nibble(block + 2, i, kSmall / 2));
}

/// In the standard a scale of 255 is a NaN; ggml ignores that, and so does this.
void take_apart_mxfp4(const std::byte* block, QuantizedGroup* out) {
    out->scale = mxfp4_scale(std::to_integer<std::uint32_t>(block[0]));
    for (std::uint32_t i = 0; i < kSmall; ++i)
        out->quants[i] = static_cast<std::int8_t>(nibble(block + 1, i, kSmall / 2));
}

/// Whether the scales of a superblock are multiples of factors.
constexpr bool has_factors(Type type) { return format_of(type).scale >= QuantScale::factor; }
constexpr std::uint32_t block_columns(Type type) { return has_factors(type) ? kLarge : kSmall; }

/// Elements are scale·quant, or (factor·multiple)·quant, less the minimum if the type has minima. A quant may be a codebook's.
template<void (*take_apart)(const std::byte*, QuantizedGroup*), Type type>
void dequantize(const std::byte* block, float* out) {
    const QuantFormat& format = format_of(type);
    constexpr bool kHasCodebook = format_of(type).codebook != nullptr;
    QuantizedGroup groups[kLarge / kGroup];
    take_apart(block, groups);
    for (std::uint32_t i = 0; i < block_columns(type); ++i) {
        const QuantizedGroup& group = groups[i / kGroup];
        const std::uint32_t part = i % kGroup / format.scale_columns;
        const int quant = group.quants[i % kGroup];
        float scale = type == Type::mxfp4 ? from_bf16(group.scale) : from_f16(group.scale);
        if (has_factors(type)) scale = scale * static_cast<float>(group.scales[part]);
        out[i] = scale * static_cast<float>(kHasCodebook ? format.codebook[quant] : quant);
        if (format.minima && has_factors(type))
            out[i] = out[i] - from_f16(group.minimum_factor) * static_cast<float>(group.minima[part]);
        else if (format.minima)
            out[i] = out[i] + from_f16(group.minimum_factor ^ 0x8000);
    }
}

template<void (*take_apart)(const std::byte*, QuantizedGroup*), Type type>
constexpr GgufBlocks blocks_of(std::uint32_t number, const char* name, std::uint32_t n_bytes) {
    return {number, name, block_columns(type), n_bytes, dequantize<take_apart, type>, Type::f32, take_apart, type};
}

constexpr GgufBlocks kBlocks[] = {
    {0, "F32", 1, 4, nullptr, Type::f32},
    {1, "F16", 1, 2, nullptr, Type::f16},
    {30, "BF16", 1, 2, nullptr, Type::bf16},
    blocks_of<take_apart_small<false, false>, Type::q4>(2, "Q4_0", 18),
    blocks_of<take_apart_small<false, true>, Type::q4_1>(3, "Q4_1", 20),
    blocks_of<take_apart_small<true, false>, Type::q5>(6, "Q5_0", 22),
    blocks_of<take_apart_small<true, true>, Type::q5_1>(7, "Q5_1", 24),
    blocks_of<take_apart_q8_0, Type::q8>(8, "Q8_0", 34),
    blocks_of<take_apart_q2_k, Type::q2_k>(10, "Q2_K", 84),
    blocks_of<take_apart_q3_k, Type::q3_k>(11, "Q3_K", 110),
    blocks_of<take_apart_k45<false>, Type::q4_k>(12, "Q4_K", 144),
    blocks_of<take_apart_k45<true>, Type::q5_k>(13, "Q5_K", 176),
    blocks_of<take_apart_q6_k, Type::q6_k>(14, "Q6_K", 210),
    blocks_of<take_apart_iq4_nl, Type::iq4_nl>(20, "IQ4_NL", 18),
    blocks_of<take_apart_iq4_xs, Type::iq4_xs>(23, "IQ4_XS", 136),
    blocks_of<take_apart_ternary<quant_tq1_0, 52>, Type::tq2_0>(34, "TQ1_0", 54),
    blocks_of<take_apart_ternary<quant_tq2_0, 64>, Type::tq2_0>(35, "TQ2_0", 66),
    {36, "I2_S", 128, 32, dequantize_i2_s, Type::f32, nullptr, Type::tq2_0, 32},
    blocks_of<take_apart_mxfp4, Type::mxfp4>(39, "MXFP4", 17),
};

}  // namespace

const GgufBlocks* find_gguf_blocks(std::uint32_t number) noexcept {
    const auto found = std::find_if(std::begin(kBlocks), std::end(kBlocks),
                                    [&](const GgufBlocks& blocks) { return blocks.number == number; });
    return found == std::end(kBlocks) ? nullptr : found;
}

std::string known_gguf_blocks() {
    std::string names;
    for (const GgufBlocks& blocks : kBlocks) {
        if (&blocks != kBlocks) names += &blocks + 1 == std::end(kBlocks) ? " or " : ", ";
        names += blocks.name;
    }
    return names;
}

}  // namespace fovea
