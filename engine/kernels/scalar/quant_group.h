// The exact integer part of a quantized product, one group of 32 columns at a time, without vectors of floats.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

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

/// Words of four bytes lie at multiples of four, which CPUs without unaligned loads want to know.
template<class T>
inline T load(const std::byte* bytes) {
    T x;
    __builtin_memcpy(&x, __builtin_assume_aligned(bytes, sizeof x == 4 ? 4 : 1), sizeof x);
    return x;
}

inline constexpr std::size_t kCells = kGroup / 4;      // four columns of a row, or of a panel's sixteen rows
inline constexpr std::size_t kCellBytes = 4 * kLanes;  // in a panel of q8

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
    /// The sum of the row's quants in n cells from cell `first` on.
    std::int32_t sum(std::uint32_t row, std::size_t first, std::size_t n) const {
        if (n == kCells) return start4(row) / -8;
        std::int32_t sum = 0;
        for (std::size_t col = first * 4; col < (first + n) * 4; ++col) sum += quant(row, col);
        return sum;
    }
    float scale(std::uint32_t row) const { return load<float>(data + kGroup * n_rows + row * 4); }
};

/// The widest integer that the machine handles at once.
#if defined(__wasm__)
using Word = std::uint64_t;
#else
using Word = std::conditional_t<sizeof(std::size_t) == 8, std::uint64_t, std::uint32_t>;
#endif
constexpr Word kOnes = static_cast<Word>(0x0101010101010101);  // in each byte

/// Eight bits of a plane hold kEach cells; those of one cell, from byte `at` of it on, each in a byte of its own.
template<std::size_t kEach>
Word plane_codes(const std::byte* plane, std::size_t cell, std::size_t at) {
    constexpr std::size_t kBits = 8 / kEach;
    return load<Word>(plane + cell / kEach * kCellBytes + at) >> cell % kEach * kBits & kOnes * ((1u << kBits) - 1);
}

/// Codes of kBits of 32 columns, plane by plane (see QuantFormat), as bytes in q8's order.
template<std::uint32_t kBits>
void unpack(const std::byte* planes, std::byte* bytes) {
    constexpr std::size_t kTwos = (kBits & 4) != 0 ? 4 : 0, kOne = kTwos + (kBits & 2);  // bits below those planes
    for (std::size_t cell = 0; cell < kCells; ++cell)
        for (std::size_t at = 0; at < kCellBytes; at += sizeof(Word)) {
            Word codes = 0;
            if constexpr (kTwos != 0) codes = plane_codes<2>(planes, cell, at);
            if constexpr ((kBits & 2) != 0) codes |= plane_codes<4>(planes + kTwos * kCellBytes, cell, at) << kTwos;
            if constexpr ((kBits & 1) != 0) codes |= plane_codes<8>(planes + kOne * kCellBytes, cell, at) << kOne;
            __builtin_memcpy(bytes + cell * kCellBytes + at, &codes, sizeof codes);
        }
}

/// The same of any format of fewer than 8 bits, or what a codebook has for them.
inline void unpack(const QuantFormat& format, const std::byte* planes, std::byte (&bytes)[kCells * kCellBytes]) {
    switch (format.bits) {
        case 2: return unpack<2>(planes, bytes);
        case 3: return unpack<3>(planes, bytes);
        case 5: return unpack<5>(planes, bytes);
        case 6: return unpack<6>(planes, bytes);
        default: unpack<4>(planes, bytes);
    }
    if (format.codebook)
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(format.codebook[static_cast<std::uint8_t>(byte)]);
}

/// dots[lane] = the int32 sum of the products of kN of the row's cells, from cell `first` on, and as many of a panel: int8
/// quants [kN][16][4], as q8 has them, or, not kQ8, q4's nibbles less 8 of all cells.
#if defined(__ARM_FEATURE_MVE)  // Helium: a lane's words gathered, sixteen products at a time

template<bool kQ8, std::size_t kN = kCells>
inline void dot_cells(const std::byte* cells, const QuantGroup& x, std::uint32_t row, std::int32_t (&dots)[kLanes],
                      std::size_t first = 0) {
    const auto gather = [](const std::byte* from, uint32x4_t offsets) {
        return vldrwq_gather_offset_u32(reinterpret_cast<const std::uint32_t*>(from), offsets);
    };
    const uint32x4_t index = vidupq_n_u32(0, 1), offsets = vmulq_n_u32(index, 64);
    // A row's cells in two vectors: 0 to 3 and 4 to 7 or, for q4, the even and the odd ones.
    const uint32x4_t x_offsets = vmulq_n_u32(index, (kQ8 ? 4 : 8) * x.n_rows);
    const auto low_quants = vreinterpretq_s8_u32(gather(x.quants(row, first), x_offsets));
    const auto high_quants =
        kN == kCells ? vreinterpretq_s8_u32(gather(x.quants(row, kQ8 ? 4 : 1), x_offsets)) : vdupq_n_s8(0);
    const auto start = x.start4(row);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane, cells += 4) {
        const auto words = vreinterpretq_u8_u32(gather(cells, offsets));
        if (kQ8) {
            dots[lane] = vmladavq_s8(vreinterpretq_s8_u8(words), low_quants);
            if (kN == kCells)
                dots[lane] = vmladavaq_s8(dots[lane], vreinterpretq_s8_u32(gather(cells + 256, offsets)), high_quants);
        } else {
            const auto low = vandq_u8(words, vdupq_n_u8(15)), high = vshrq_n_u8(words, 4);
            dots[lane] = vmladavaq_s8(vmladavaq_s8(start, vreinterpretq_s8_u8(low), low_quants),
                                      vreinterpretq_s8_u8(high), high_quants);
        }
    }
}

#elif defined(FOVEA_NEON_INTEGERS)  // eight products at a time, of which 16 bits hold the sum of two: 2·128·127

template<bool kQ8, std::size_t kN = kCells>
inline void dot_cells(const std::byte* cells, const QuantGroup& x, std::uint32_t row, std::int32_t (&dots)[kLanes],
                      std::size_t first = 0) {
    int8x8_t quants[kN];
    for (std::size_t cell = 0; cell < kN; ++cell)
        quants[cell] = vreinterpret_s8_s32(vdup_n_s32(load<std::int32_t>(x.quants(row, first + cell))));
    const auto start = kQ8 ? 0 : x.start4(row);
    const auto* words = reinterpret_cast<const std::uint8_t*>(cells);
    for (std::uint32_t lane = 0; lane < kLanes; lane += 4, words += 16) {
        int32x4_t left = vdupq_n_s32(0), right = left;  // two lanes' each
        for (std::size_t cell = 0; cell < kN; cell += 2) {
            const uint8x16_t word = vld1q_u8(words + cell * (kQ8 ? 64 : 32));
            const auto even = vreinterpretq_s8_u8(kQ8 ? word : vandq_u8(word, vdupq_n_u8(15)));
            const auto odd = vreinterpretq_s8_u8(kQ8 ? vld1q_u8(words + cell * 64 + 64) : vshrq_n_u8(word, 4));
            const auto add = [&](int32x4_t sum, int8x8_t a, int8x8_t b) {
                return vpadalq_s16(sum, vmlal_s8(vmull_s8(a, quants[cell]), b, quants[cell + 1]));
            };
            left = add(left, vget_low_s8(even), vget_low_s8(odd));
            right = add(right, vget_high_s8(even), vget_high_s8(odd));
        }
        const int32x2_t low = vpadd_s32(vget_low_s32(left), vget_high_s32(left));
        const int32x2_t high = vpadd_s32(vget_low_s32(right), vget_high_s32(right));
        vst1q_s32(dots + lane, vaddq_s32(vcombine_s32(low, high), vdupq_n_s32(start)));
    }
}

#elif defined(__ARM_FEATURE_DSP)  // two products at a time: every other byte of a word, widened

template<bool kQ8, std::size_t kN = kCells>
inline void dot_cells(const std::byte* cells, const QuantGroup& x, std::uint32_t row, std::int32_t (&dots)[kLanes],
                      std::size_t first = 0) {
    constexpr std::uint32_t kNibbles = 0xf000f;
    std::uint32_t even[kN], odd[kN];
    for (std::size_t cell = 0; cell < kN; ++cell) {
        const auto quants = load<std::uint32_t>(x.quants(row, first + cell));
        even[cell] = __sxtb16(quants);
        odd[cell] = __sxtb16(std::rotr(quants, 8));
    }
    const auto add = [&](std::uint32_t even_weights, std::uint32_t odd_weights, std::size_t cell, std::int32_t sum) {
        return __smlad(even_weights, even[cell], __smlad(odd_weights, odd[cell], sum));
    };
    const auto start = x.start4(row);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane, cells += 4) {
        std::int32_t sum = kQ8 ? 0 : start;
        if (kQ8)
#pragma GCC unroll 8
            for (std::size_t cell = 0; cell < kN; ++cell) {
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

#else  // without such instructions: a product in each half of a word, of two of the panel's rows

constexpr Word kLowBits = static_cast<Word>(0x0000000100000001);  // in each half
constexpr std::size_t kHalves = sizeof(Word) / 4, kWords = 4;

/// A half is a sum of (code·quant), and the lower one borrows from the upper. q8's codes are its quants plus 128.
template<bool kQ8, std::size_t kN = kCells>
inline void dot_cells(const std::byte* cells, const QuantGroup& x, std::uint32_t row, std::int32_t (&dots)[kLanes],
                      std::size_t first = 0) {
    constexpr std::size_t kStep = kQ8 ? 1 : 2;  // cells of a byte
    Word quants[kN][4];
    std::int32_t total = 0;
    for (std::size_t cell = 0; cell < kN; ++cell)
        for (std::size_t i = 0; i < 4; ++i) {
            const std::int32_t quant = x.quant(row, (first + cell) * 4 + i);
            quants[cell][i] = static_cast<Word>(static_cast<std::make_signed_t<Word> >(quant));
            total += quant;
        }
    for (std::uint32_t lane = 0; lane < kLanes; lane += kWords * kHalves) {
        Word sums[kWords] = {};
        for (std::size_t cell = 0; cell < kN; cell += kStep)
            for (std::size_t i = 0; i < kWords; ++i) {
                const Word word = load<Word>(cells + cell / kStep * kCellBytes + lane * 4 + i * sizeof(Word));
                const Word codes = kQ8 ? word ^ kOnes << 7 : word;
                for (std::size_t j = 0; j < 4; ++j) {
                    sums[i] += (codes >> 8 * j & kLowBits * (kQ8 ? 255 : 15)) * quants[cell][j];
                    if (!kQ8) sums[i] += (codes >> (8 * j + 4) & kLowBits * 15) * quants[cell + 1][j];
                }
            }
        for (std::size_t i = 0; i < kWords; ++i)
            for (std::size_t half = 0; half < kHalves; ++half) {
                const auto low = static_cast<std::int32_t>(sums[i]);
                dots[lane + i * kHalves + half] = low - (kQ8 ? 128 : 8) * total;
                if constexpr (kHalves == 2)
                    sums[i] = (sums[i] - static_cast<Word>(static_cast<std::int64_t>(low))) >> 16 >> 16;
            }
    }
}

#endif

}  // namespace
}  // namespace fovea
