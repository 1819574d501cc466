// The block product of q8 and q4 panels. What product.h does column by column is done by groups of 32 columns here: an
// exact integer sum per row, converted, scaled and added to the float sums.
#pragma once
#include "matmul.h"
#include "quants.h"

namespace fovea {
namespace {

/// Two groups of a panel as they are in the file, see panel_bytes.
template<Type kWeights>
struct Superblock {
    static constexpr Type kType = kWeights;
    static constexpr bool kPairs = false;
    static constexpr std::size_t kPairBytes = kType == Type::q8 ? 128 : 64;
    Half scales[2][kLanes];
    std::byte quants[2][kGroup / 8][kPairBytes];

    FOVEA_LANES F32x16 scale(std::size_t group) const { return load(scales[group]); }
    /// The first or second cell of a group's columns 8·pair to 8·pair + 7.
    FOVEA_LANES Bytes cell(std::size_t group, std::size_t pair, std::size_t i) const {
        const std::byte* p = quants[group][pair];
        if constexpr (kType == Type::q8) return q8_cell(bytes(p + 64 * i));
        return i ? high_nibbles(bytes(p)) : low_nibbles(bytes(p));
    }
};

/// The same for many rows: scales as floats, cells ready to multiply.
template<Type kWeights>
struct WideSuperblock {
    static constexpr Type kType = kWeights;
    static constexpr bool kPairs = QuantTiling::kPairs;
    float scales[2][kLanes];
    std::byte quants[2][kGroup / 8][2][64];

    FOVEA_LANES F32x16 scale(std::size_t group) const { return load(scales[group]); }
    FOVEA_LANES Bytes cell(std::size_t group, std::size_t pair, std::size_t i) const {
        return bytes(quants[group][pair][i]);
    }
};

template<class Q>
struct QuantColumnGroup {
    using Shape = QuantTiling;
    using Wide = WideSuperblock<Q::kType>;
    static constexpr std::uint32_t kCols = kSuperblock;
    static constexpr std::size_t kWeights = 1, kWords = 2 * kQuantGroupBytes / 4;
    static void widen(const Q* from, std::uint32_t n_units, Wide* to) {
        for (std::uint32_t i = 0; i < n_units; ++i)
            for (std::size_t group = 0; group < 2; ++group) {
                store(from[i].scale(group), to[i].scales[group]);
                for (std::size_t pair = 0; pair < kGroup / 8; ++pair) {
                    Bytes cell[2] = {from[i].cell(group, pair, 0), from[i].cell(group, pair, 1)};
                    make_pairs(cell);
                    for (std::size_t half = 0; half < 2; ++half) store(cell[half], to[i].quants[group][pair][half]);
                }
            }
    }
};
template<Type kType>
struct ColumnGroup<Superblock<kType>> : QuantColumnGroup<Superblock<kType>> {};
template<Type kType>
struct ColumnGroup<WideSuperblock<kType>> : QuantColumnGroup<WideSuperblock<kType>> {};

/// sum[row][p] = fma(products of one group, w_scale·x_scale, sum[row][p]). x is the group of n_packed rows from the
/// first of kRows on, see Kernels::pack_q8. each_pair(pair) is called before every eight columns, to fetch what comes next.
template<std::uint32_t kRows, class Q, std::uint32_t kPanels, class EachPair>
FOVEA_LANES void add_group(float* sum, const Q* const (&weight)[kPanels], std::size_t group, const std::byte* x,
                           std::size_t n_packed, EachPair&& each_pair) {
    const std::byte* const x_scales = x + kGroup * n_packed;
    const std::byte* const starts = x_scales + (Q::kType == Type::q8 ? 4 : 8) * n_packed;
    Dot dot[Q::kPairs ? (kRows + 1) / 2 * 2 : kRows][kPanels] = {};
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) dot[r][p] = begin_sum(starts + 4 * r);
    }
    FOVEA_UNROLL for (std::size_t pair = 0; pair < kGroup / 8; ++pair) {
        each_pair(pair);
        if constexpr (Q::kPairs)
            add_pairs<kRows>(dot, weight, group, pair, x, n_packed);
        else
            add_columns(dot, weight, group, pair, x, n_packed);
        x += 8 * n_packed;
    }
    F32x16 scale[kPanels];
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) scale[p] = weight[p]->scale(group);
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        const F32x16 x_scale = splat(__builtin_bit_cast(float, word(x_scales + 4 * r)));
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            if constexpr (Q::kPairs)
                if (r % 2 == 0) part(dot[r][p], dot[r + 1][p]);
            float* at = sum + (r * kPanels + p) * kLanes;
            store(fma(end_sum<Q::kType>(dot[r][p], starts + 4 * r), scale[p] * x_scale, load(at)), at);
        }
    }
}

/// Fetches what a pair of a group's cells will be `ahead` bytes on, and the group's scales with the first: evenly, for
/// of a burst only the first lines get under way. Of two tiles that go over the same weights each fetches every other line.
template<bool kTiled, class Q, std::uint32_t kPanels>
FOVEA_LANES void fetch_pair(const Q* const (&weight)[kPanels], std::size_t group, std::size_t pair, std::size_t ahead) {
    constexpr std::size_t kLine = 64, kStep = kTiled ? 2 * kLine : kLine, kPairBytes = sizeof weight[0]->quants[0][0];
    asm volatile("" : "+r"(ahead) : : "memory");  // else the compiler would fetch for all pairs before the first
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
        const auto* quants = reinterpret_cast<const std::byte*>(weight[p]->quants[group][pair]) + ahead;
        FOVEA_UNROLL for (std::size_t line = 0; line < kPairBytes; line += kLine) {
            if ((pair * kPairBytes + line) % kStep == 0) __builtin_prefetch(quants + line, 0, 3);
        }
        if (pair == 0) __builtin_prefetch(reinterpret_cast<const std::byte*>(weight[p]) + ahead, 0, 3);
    }
}

/// How far ahead to fetch in unit i of a block whose streams are all fetched as far.
template<class Q, std::uint32_t kPanels>
FOVEA_LANES std::size_t ahead_of(const Block<Q, kPanels>& b, std::size_t i) {
    const auto ahead = b.ahead[0] - reinterpret_cast<const std::byte*>(b.weight[0]);
    return static_cast<std::size_t>(ahead) + (i < b.ahead_cols ? 0 : b.ahead_jump);
}

/// Registers are for the integer sums: the more there are, the less the adders wait. A float sum is touched once for
/// eight integer products and stays in memory.
template<std::uint32_t kRows, Fetch kFetch, class Q, std::uint32_t kPanels>
requires(is_quantized(Q::kType)) void microkernel(const Block<Q, kPanels>& b) {
    alignas(64) float sums[kRows * kPanels * kLanes];
    float* sum = sums;
    for (std::uint32_t i = 0; i < kRows * kPanels; ++i) store(splat(0.0f), sum + i * kLanes);
    const auto* x = reinterpret_cast<const std::byte*>(b.operand);
    for (std::size_t i = 0; i < b.n_cols; ++i) {
        const std::size_t ahead = kFetch == Fetch::first ? ahead_of(b, i) : i * b.ahead_step;
        const Q* weight[kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            weight[p] = b.weight[p] + i;
            for (std::size_t line = 0; kFetch == Fetch::second && line < b.ahead_step; line += 64)
                __builtin_prefetch(b.ahead[p] + ahead + line, 0, 2);
        }
        for (std::size_t group = 0; group < 2; ++group, x += kQuantGroupBytes * b.operand_stride) {
            asm volatile("" : "+r"(sum) : : "memory");  // else they would be kept in registers that there are not
            const auto fetch = [&](std::size_t pair) __attribute__((always_inline)) {
                if constexpr (kFetch == Fetch::first) fetch_pair<false>(weight, group, pair, ahead);
            };
            add_group<kRows>(sum, weight, group, x, b.operand_stride, fetch);
        }
    }
    F32x16 block[kRows][kPanels];
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) block[r][p] = load(sum + (r * kPanels + p) * kLanes);
    }
    store_totals(block, b);
}

/// As that of product.h, with a group for a step.
template<std::uint32_t kRows, class Q, std::uint32_t kPanels>
requires(is_quantized(Q::kType)) void tiles_product(const Block<Q, kPanels>& b, const RowTile* tiles,
                                                    std::uint32_t n_tiles, std::size_t offset) {
    alignas(64) float sums[kFewRows * kPanels * kLanes];
    for (std::uint32_t i = 0; i < n_tiles * kRows * kPanels; ++i) store(splat(0.0f), sums + i * kLanes);
    for (std::size_t i = 0; i < b.n_cols; ++i) {
        const std::size_t ahead = ahead_of(b, i);
        const Q* weight[kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) weight[p] = b.weight[p] + i;
        for (std::size_t group = 0; group < 2; ++group, offset += kQuantGroupBytes / 4) {
            float* sum = sums;
            for (std::uint32_t t = 0; t < n_tiles; ++t, sum += kRows * kPanels * kLanes) {
                asm volatile("" : "+r"(sum) : : "memory");  // as above
                const std::size_t n_packed = tiles[t].packed;
                const auto* x = reinterpret_cast<const std::byte*>(tiles[t].operand + offset * n_packed);
                const auto fetch = [&, line = t % 2 * 64 ](std::size_t pair) __attribute__((always_inline)) {
                    fetch_pair<true>(weight, group, pair, ahead + line);
                };
                if (tiles[t].n_rows == kRows)
                    add_group<kRows>(sum, weight, group, x, n_packed, fetch);
                else if constexpr (kRows > 1)
                    add_group<kRows - 1>(sum, weight, group, x, n_packed, fetch);
            }
        }
    }
    store_totals<kRows>(sums, tiles, n_tiles, b);
}

}  // namespace
}  // namespace fovea
