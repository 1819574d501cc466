// The exact integer part of a quantized product, one group of 32 columns at a time, without vectors.
#pragma once
#include <bit>
#include <cstdint>

#include "engine/format/half.h"
#include "engine/kernels/kernels.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(FOVEA_NEON_INTEGERS)
#include <arm_neon.h>
#elif defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif

namespace fovea {
namespace {

template<class T>
inline T load(const std::byte* bytes) {
    T x;
    __builtin_memcpy(&x, bytes, sizeof x);
    return x;
}

/// A packed row's groups, see Kernels::pack_q8.
struct QuantGroup {
    const std::byte* data;
    std::uint32_t n_rows;

    const std::byte* quants(std::uint32_t row, std::size_t cell) const { return data + (cell * n_rows + row) * 4; }
    std::int32_t quant(std::uint32_t row, std::size_t col) const {
        return static_cast<std::int8_t>(quants(row, col / 4)[col % 4]);
    }
    /// −8 times the sum of the row's quants.
    std::int32_t start4(std::uint32_t row) const { return load<std::int32_t>(data + (kGroup + 8) * n_rows + row * 4); }
    float scale(std::uint32_t row) const { return load<float>(data + kGroup * n_rows + row * 4); }
};

/// dots[lane] = the int32 sum of the products of columns [begin, begin + n), all of one group, for one row.
inline void dot_span(const QuantPanel& panel, std::size_t begin, std::size_t n, const QuantGroup& x, std::uint32_t row,
                     std::int32_t (&dots)[kLanes]) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        dots[lane] = 0;
        for (std::size_t col = begin; col < begin + n; ++col)
            dots[lane] += panel.quant(col, lane) * x.quant(row, col % kGroup);
    }
}

/// The same of the 32 columns that start with `begin`, of a panel of q8 or q4.
#if defined(__ARM_FEATURE_MVE)  // Helium: a lane's words gathered, sixteen products at a time

template<bool kQ8>
inline void dot_group(const QuantPanel& panel, std::size_t begin, const QuantGroup& x, std::uint32_t row,
                      std::int32_t (&dots)[kLanes]) {
    const auto gather = [](const std::byte* from, uint32x4_t offsets) {
        return vldrwq_gather_offset_u32(reinterpret_cast<const std::uint32_t*>(from), offsets);
    };
    const uint32x4_t index = vidupq_n_u32(0, 1), offsets = vmulq_n_u32(index, 64);
    // A row's cells in two vectors: 0 to 3 and 4 to 7 or, for q4, the even and the odd ones.
    const uint32x4_t x_offsets = vmulq_n_u32(index, (kQ8 ? 4 : 8) * x.n_rows);
    const auto first = vreinterpretq_s8_u32(gather(x.quants(row, 0), x_offsets));
    const auto second = vreinterpretq_s8_u32(gather(x.quants(row, kQ8 ? 4 : 1), x_offsets));
    const auto start = x.start4(row);
    const std::byte* cells = panel.quants(begin);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane, cells += 4) {
        const auto words = vreinterpretq_u8_u32(gather(cells, offsets));
        if (kQ8) {
            const auto more = vreinterpretq_s8_u32(gather(cells + 256, offsets));
            dots[lane] = vmladavaq_s8(vmladavq_s8(vreinterpretq_s8_u8(words), first), more, second);
        } else {
            const auto low = vandq_u8(words, vdupq_n_u8(15)), high = vshrq_n_u8(words, 4);
            dots[lane] =
                vmladavaq_s8(vmladavaq_s8(start, vreinterpretq_s8_u8(low), first), vreinterpretq_s8_u8(high), second);
        }
    }
}

#elif defined(FOVEA_NEON_INTEGERS)  // eight products at a time, of which 16 bits hold the sum of two: 2·128·127

template<bool kQ8>
inline void dot_group(const QuantPanel& panel, std::size_t begin, const QuantGroup& x, std::uint32_t row,
                      std::int32_t (&dots)[kLanes]) {
    constexpr std::size_t kCells = kGroup / 4;
    int8x8_t quants[kCells];
    for (std::size_t cell = 0; cell < kCells; ++cell)
        quants[cell] = vreinterpret_s8_s32(vdup_n_s32(load<std::int32_t>(x.quants(row, cell))));
    const auto start = kQ8 ? 0 : x.start4(row);
    const auto* cells = reinterpret_cast<const std::uint8_t*>(panel.quants(begin));
    for (std::uint32_t lane = 0; lane < kLanes; lane += 4, cells += 16) {
        int32x4_t first = vdupq_n_s32(0), second = first;  // two lanes' each
        for (std::size_t cell = 0; cell < kCells; cell += 2) {
            const uint8x16_t word = vld1q_u8(cells + cell * (kQ8 ? 64 : 32));
            const auto even = vreinterpretq_s8_u8(kQ8 ? word : vandq_u8(word, vdupq_n_u8(15)));
            const auto odd = vreinterpretq_s8_u8(kQ8 ? vld1q_u8(cells + cell * 64 + 64) : vshrq_n_u8(word, 4));
            const auto add = [&](int32x4_t sum, int8x8_t a, int8x8_t b) {
                return vpadalq_s16(sum, vmlal_s8(vmull_s8(a, quants[cell]), b, quants[cell + 1]));
            };
            first = add(first, vget_low_s8(even), vget_low_s8(odd));
            second = add(second, vget_high_s8(even), vget_high_s8(odd));
        }
        const int32x2_t low = vpadd_s32(vget_low_s32(first), vget_high_s32(first));
        const int32x2_t high = vpadd_s32(vget_low_s32(second), vget_high_s32(second));
        vst1q_s32(dots + lane, vaddq_s32(vcombine_s32(low, high), vdupq_n_s32(start)));
    }
}

#elif defined(__ARM_FEATURE_DSP)  // two products at a time: every other byte of a word, widened

template<bool kQ8>
inline void dot_group(const QuantPanel& panel, std::size_t begin, const QuantGroup& x, std::uint32_t row,
                      std::int32_t (&dots)[kLanes]) {
    constexpr std::uint32_t kNibbles = 0xf000f, kCells = kGroup / 4;
    std::uint32_t even[kCells], odd[kCells];
    for (std::size_t cell = 0; cell < kCells; ++cell) {
        const auto quants = load<std::uint32_t>(x.quants(row, cell));
        even[cell] = __sxtb16(quants);
        odd[cell] = __sxtb16(std::rotr(quants, 8));
    }
    const auto add = [&](std::uint32_t even_weights, std::uint32_t odd_weights, std::size_t cell, std::int32_t sum) {
        return __smlad(even_weights, even[cell], __smlad(odd_weights, odd[cell], sum));
    };
    const auto start = x.start4(row);
    const std::byte* cells = panel.quants(begin);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane, cells += 4) {
        std::int32_t sum = kQ8 ? 0 : start;
        if (kQ8)
#pragma GCC unroll 8
            for (std::size_t cell = 0; cell < kCells; ++cell) {
                const auto weights = load<std::uint32_t>(cells + cell * 64);
                sum = add(__sxtb16(weights), __sxtb16(std::rotr(weights, 8)), cell, sum);
            }
        else
#pragma GCC unroll 4
            for (std::size_t cell = 0; cell < kCells; cell += 2) {
                const auto weights = load<std::uint32_t>(cells + cell * 32);
                sum = add(weights & kNibbles, weights >> 8 & kNibbles, cell, sum);
                sum = add(weights >> 4 & kNibbles, weights >> 12 & kNibbles, cell + 1, sum);
            }
        dots[lane] = sum;
    }
}

#else

template<bool>
inline void dot_group(const QuantPanel& panel, std::size_t begin, const QuantGroup& x, std::uint32_t row,
                      std::int32_t (&dots)[kLanes]) {
    dot_span(panel, begin, kGroup, x, row, dots);
}

#endif

}  // namespace
}  // namespace fovea
