// Integer products with AArch64's NEON, its dot product (dotprod) or its matrix product (i8mm); see quants.h.
#pragma once
#include "engine/kernels/lanes/lanes.h"

namespace fovea {
namespace {

struct Bytes {
    int8x16_t q[4];
};
FOVEA_LANES Bytes bytes(const std::byte* p) {
    const auto* at = reinterpret_cast<const std::int8_t*>(p);
    return {vld1q_s8(at), vld1q_s8(at + 16), vld1q_s8(at + 32), vld1q_s8(at + 48)};
}
FOVEA_LANES void store(Bytes x, std::byte* p) {
    for (int i = 0; i < 4; ++i) vst1q_s8(reinterpret_cast<std::int8_t*>(p) + 16 * i, x.q[i]);
}
FOVEA_LANES Bytes low_nibbles(Bytes w) {
    for (int i = 0; i < 4; ++i) w.q[i] = vandq_s8(w.q[i], vdupq_n_s8(15));
    return w;
}
FOVEA_LANES Bytes high_nibbles(Bytes w) {
    for (int i = 0; i < 4; ++i) w.q[i] = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(w.q[i]), 4));
    return w;
}
FOVEA_LANES Bytes operator|(Bytes a, Bytes b) {
    for (int i = 0; i < 4; ++i) a.q[i] = vorrq_s8(a.q[i], b.q[i]);
    return a;
}
FOVEA_LANES Bytes join_nibbles(Bytes w, bool high, Bytes more) {
    return (high ? high_nibbles(w) : low_nibbles(w)) | more;
}
FOVEA_LANES Bytes moved_bits(Bytes w, int from, int to, int mask) {
    const int8x16_t by = vdupq_n_s8(static_cast<std::int8_t>(to - from));  // to the right if it is negative
    for (int i = 0; i < 4; ++i) {
        const uint8x16_t moved = vshlq_u8(vreinterpretq_u8_s8(w.q[i]), by);
        w.q[i] = vandq_s8(vreinterpretq_s8_u8(moved), vdupq_n_s8(static_cast<std::int8_t>(mask)));
    }
    return w;
}
inline constexpr bool kSameProducts = false;
FOVEA_LANES Bytes signed_cell(Bytes w) { return w; }
FOVEA_LANES Bytes lookup(Bytes w, const std::int8_t* codebook) {
    const int8x16_t table = vld1q_s8(codebook);
    for (int i = 0; i < 4; ++i) w.q[i] = vqtbl1q_s8(table, vreinterpretq_u8_s8(w.q[i]));
    return w;
}
FOVEA_LANES Bytes codebook_cell(Bytes w, const std::int8_t* codebook) { return lookup(w, codebook); }
FOVEA_LANES Bytes less(Bytes w, int n) {
    for (int i = 0; i < 4; ++i) w.q[i] = vsubq_s8(w.q[i], vdupq_n_s8(static_cast<std::int8_t>(n)));
    return w;
}
template<int kZero>
FOVEA_LANES Bytes centred_cell(Bytes w) {
    return less(w, kZero);
}
FOVEA_LANES void store_bytes(U32x16 x, std::byte* p) {
    const uint16x8_t low = vcombine_u16(vmovn_u32(x.q[0]), vmovn_u32(x.q[1]));
    const uint16x8_t high = vcombine_u16(vmovn_u32(x.q[2]), vmovn_u32(x.q[3]));
    vst1q_u8(reinterpret_cast<std::uint8_t*>(p), vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
}

#if defined(__ARM_FEATURE_DOTPROD)

struct QuantTiling {
    static constexpr std::uint32_t kRows = 6;
    static constexpr std::uint32_t kLiveSums = 6;
    static constexpr std::uint32_t kMostPanels = 4;
    static constexpr std::uint32_t kStreamRows = 0;
    static constexpr std::size_t kOperandBytes = 256 << 10;
#if defined(__ARM_FEATURE_MATMUL_INT8)
    static constexpr bool kPairs = true;
#else
    static constexpr bool kPairs = false;
#endif
};

struct Dot {
    int32x4_t q[4];
};
/// As fma of a float: the four bytes are taken from an s register.
template<Type>
FOVEA_LANES Dot add_products(Dot sum, Bytes cell, const std::byte* x) {
    const float four = __builtin_bit_cast(float, word(x));
    for (int i = 0; i < 4; ++i) asm("sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(sum.q[i]) : "w"(cell.q[i]), "w"(four));
    return sum;
}
template<Type>
FOVEA_LANES Dot whole(Dot sum) {
    return sum;
}

#if defined(__ARM_FEATURE_MATMUL_INT8)
// smmla multiplies two rows of eight columns with two others. Cells that were made ready for many rows hold it such
// pairs: register i of the first has rows 2i and 2i + 1 of a panel, the second rows 8 + 2i and 9 + 2i. The first Dot
// holds the sums of two rows of the operand with a panel's rows 0 to 7, the second those with the rest.
FOVEA_LANES void make_pairs(Bytes (&cell)[2]) {
    const Bytes a = cell[0], b = cell[1];
    for (int i = 0; i < 4; ++i) {
        const int32x4_t x = vreinterpretq_s32_s8(a.q[i]), y = vreinterpretq_s32_s8(b.q[i]);
        cell[i / 2].q[2 * i % 4] = vreinterpretq_s8_s32(vzip1q_s32(x, y));
        cell[i / 2].q[2 * i % 4 + 1] = vreinterpretq_s8_s32(vzip2q_s32(x, y));
    }
}
template<std::uint32_t kRows, std::uint32_t kDots, class Q, std::uint32_t kPanels>
FOVEA_LANES void add_pairs(Dot (&dot)[kDots][kPanels], const Q (&weight)[kPanels], std::size_t group, std::size_t pair,
                           const std::byte* x, std::size_t n_packed) {
    const auto two = [](const std::byte* from, std::uint32_t r) {  // an odd last row goes with itself
        const auto* at = reinterpret_cast<const std::int32_t*>(from + 4 * r);
        const int32x2_t rows = r + 1 < kRows ? vld1_s32(at) : vld1_dup_s32(at);
        return vcombine_s32(rows, rows);
    };
    int8x16_t rows[kDots / 2];
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kDots / 2; ++r) {
        rows[r] = vreinterpretq_s8_s32(vzip1q_s32(two(x, 2 * r), two(x + 4 * n_packed, 2 * r)));
    }
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
        FOVEA_UNROLL for (std::uint32_t i = 0; i < 8; ++i) {
            const int8x16_t w = weight[p].cell(group, pair, i / 4).q[i % 4];
            FOVEA_UNROLL for (std::uint32_t r = 0; r < kDots / 2; ++r) {
                int32x4_t& sum = dot[2 * r + i / 4][p].q[i % 4];
                sum = vmmlaq_s32(sum, rows[r], w);
            }
        }
    }
}
/// The sums of two rows, each with a panel's sixteen.
FOVEA_LANES void split_rows(Dot& a, Dot& b) {
    const auto zip = [](const Dot& dot, int i, bool second) {
        const int64x2_t x = vreinterpretq_s64_s32(dot.q[i]), y = vreinterpretq_s64_s32(dot.q[i + 1]);
        return vreinterpretq_s32_s64(second ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
    };
    const Dot first{zip(a, 0, false), zip(a, 2, false), zip(b, 0, false), zip(b, 2, false)};
    b = {zip(a, 0, true), zip(a, 2, true), zip(b, 0, true), zip(b, 2, true)};
    a = first;
}
#endif

#else

struct QuantTiling {
    static constexpr std::uint32_t kRows = 2;
    static constexpr std::uint32_t kLiveSums = 2;
    static constexpr std::uint32_t kMostPanels = 2;
    static constexpr std::uint32_t kStreamRows = 0;
    static constexpr std::size_t kOperandBytes = 256 << 10;
    static constexpr bool kPairs = false;
};

/// Register i has rows 2i and 2i + 1, each of them in two parts that are int32 (q4: four that are int16).
struct Dot {
    int32x4_t q[8];
};

FOVEA_LANES int8x16_t four(const std::byte* x) { return vreinterpretq_s8_s32(vdupq_n_s32(word(x))); }

// The products of a's and b's upper or lower eight bytes; and added to a sum.
template<bool kHigh>
FOVEA_LANES int16x8_t products(int8x16_t a, int8x16_t b) {
    return kHigh ? vmull_high_s8(a, b) : vmull_s8(vget_low_s8(a), vget_low_s8(b));
}
template<bool kHigh>
FOVEA_LANES int16x8_t add_products(int16x8_t sum, int8x16_t a, int8x16_t b) {
    return kHigh ? vmlal_high_s8(sum, a, b) : vmlal_s8(sum, vget_low_s8(a), vget_low_s8(b));
}

/// q8: two products fit int16, 2·128·127, and are then added by pairs. q4: all eight of a group do, 8·15·127.
template<Type kType, bool kHigh>
FOVEA_LANES void add_both(int32x4_t& sum, int8x16_t w0, int8x16_t x0, int8x16_t w1, int8x16_t x1) {
    if constexpr (sums_16(kType))
        sum =
            vreinterpretq_s32_s16(add_products<kHigh>(add_products<kHigh>(vreinterpretq_s16_s32(sum), w0, x0), w1, x1));
    else
        sum = vpadalq_s16(sum, add_products<kHigh>(products<kHigh>(w0, x0), w1, x1));
}
template<std::uint32_t kRows, class Q, std::uint32_t kPanels, class After>
FOVEA_LANES void add_columns(Dot (&dot)[kRows][kPanels], const Q (&weight)[kPanels], std::size_t group,
                             std::size_t pair, const std::byte* x, std::size_t n_packed, bool last, After&& after) {
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
        const Bytes w0 = weight[p].cell(group, pair, 0), w1 = weight[p].cell(group, pair, 1);
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            const int8x16_t x0 = four(x + 4 * r), x1 = four(x + 4 * n_packed + 4 * r);
            FOVEA_UNROLL for (int i = 0; i < 4; ++i) {
                add_both<Q::kType, false>(dot[r][p].q[2 * i], w0.q[i], x0, w1.q[i], x1);
                add_both<Q::kType, true>(dot[r][p].q[2 * i + 1], w0.q[i], x0, w1.q[i], x1);
            }
        }
    }
    FOVEA_UNROLL for (std::uint32_t r = 0; last && r < kRows; ++r) after(r);
}
template<Type kType>
FOVEA_LANES Dot whole(Dot sum) {
    if constexpr (sums_16(kType))
        for (auto& q : sum.q) q = vpaddlq_s16(vreinterpretq_s16_s32(q));
    for (int i = 0; i < 4; ++i) sum.q[i] = vpaddq_s32(sum.q[2 * i], sum.q[2 * i + 1]);
    return sum;
}
#endif

FOVEA_LANES void keep(Dot& sums) {
    for (auto& part : sums.q) asm("" : "+w"(part));
}
template<Type kType, std::uint32_t kRows>
using Starts = typename StartsOf<kType, kRows>::Found;
template<Type>
FOVEA_LANES Dot begin_sum(const std::byte*) {
    return {};
}
template<Type kType>
FOVEA_LANES F32x16 end_sum(Dot sum, const std::byte* start) {
    const Dot dot = whole<kType>(sum);
    F32x16 x;
    if constexpr (has_packed_zero(kType)) {
        const int32x4_t first = vdupq_n_s32(word(start) * (format_of(kType).zero / 8));
        for (int i = 0; i < 4; ++i) x.q[i] = vcvtq_f32_s32(dot.q[i] + first);
    } else {
        for (int i = 0; i < 4; ++i) x.q[i] = vcvtq_f32_s32(dot.q[i]);
    }
    return x;
}

}  // namespace
}  // namespace fovea
