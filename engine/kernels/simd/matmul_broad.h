// The block product of panels in broad groups: an integer sum stays in its register over 128 columns, and is scaled once.
#pragma once
#include "matmul_q.h"

namespace fovea {
namespace {

inline constexpr std::size_t kBroadUnits = kBroadGroup / kSuperblock;

/// sum[row][p] = fma(products of units [begin, end) of a block, w_scale·x_scale, sum[row][p]). x is their first group of
/// n_packed rows, from the first of kRows on, see Kernels::pack_broad. each_pair(weight, unit, group, pair, x of that group)
/// is called before every eight columns, to fetch what comes next.
template<std::uint32_t kRows, BroadGroups W, std::uint32_t kPanels, class EachPair>
FOVEA_LANES void add_units(float* sum, const Block<W, kPanels>& b, std::size_t begin, std::size_t end,
                           const std::byte* x, std::size_t n_packed, EachPair&& each_pair) {
    using Unit = typename ColumnGroup<W>::Unit;
    const std::byte* const x_scales = x + kGroup * n_packed;
    const Starts<Unit::kType, kRows> starts(x, n_packed, x_scales);
    Dot dot[Unit::kPairs ? (kRows + 1) / 2 * 2 : kRows][kPanels] = {};
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) dot[r][p] = begin_sum<Unit::kType>(starts.of(r));
    }
    Unit weight[kPanels];
    F32x16 scale[kPanels];
    const auto finish = [&](std::uint32_t r) __attribute__((always_inline)) {
        finish_row<Unit::kType>(SumsInMemory<kRows, kPanels>{sum}, r, dot[r], scale, starts.of(r), x_scales);
    };
    // As in add_group, a row is finished beside the next one's last products. A row or two wait for memory alone.
    constexpr bool kBeside = kRows > QuantTiling::kStreamRows;
    constexpr std::size_t kLastPair = kGroup / 8 - 1;
    for (std::size_t i = 2 * begin;; x += (kQuantGroupBytes - kLastPair * 8) * n_packed, ++i) {
        const std::size_t unit = i / 2, group = i % 2;
        const std::byte* const of_group = x;
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) weight[p] = Unit::at(b.weight[p], unit);
        FOVEA_UNROLL for (std::size_t pair = 0; pair < kLastPair; ++pair, x += 8 * n_packed) {
            each_pair(weight, unit, group, pair, of_group);
            add_cells<kRows>(dot, weight, group, pair, x, n_packed, false, finish);
        }
        each_pair(weight, unit, group, kLastPair, of_group);
        const bool last = i + 1 == 2 * end;
        if (kBeside && last) break;
        add_cells<kRows>(dot, weight, group, kLastPair, x, n_packed, false, finish);
        if (last) break;
        // Else they would go to memory and back from one group to the next.
        FOVEA_UNROLL for (auto& row : dot) { FOVEA_UNROLL for (Dot& sums : row) keep(sums); }
    }
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) scale[p] = weight[p].scale(0);
    if constexpr (kBeside) return add_cells<kRows>(dot, weight, 1, kLastPair, x, n_packed, true, finish);
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) finish(r);
}

template<std::uint32_t kRows, Fetch kFetch, BroadGroups W, std::uint32_t kPanels>
void microkernel(const Block<W, kPanels>& b) {
    alignas(64) float sums[kRows * kPanels * kLanes];
    clear<kRows, kPanels>(sums);
    const auto* x = reinterpret_cast<const std::byte*>(b.operand);
    const auto fetch = [&](const auto& weight, std::size_t i, std::size_t group, std::size_t pair,
                           const std::byte* of_group) __attribute__((always_inline)) {
        if constexpr (kFetch == Fetch::first) fetch_pair<false>(weight, group, pair, ahead_of(b, i), b.second_level);
        if constexpr (kFetch == Fetch::second) {
            if (group == 0 && pair == 0) fetch_next<kRows>(b, static_cast<std::uint32_t>(i));
            fetch_rows<kRows>(of_group, b, pair);
        }
    };
    const std::size_t step = kBroadUnits * 2 * kQuantGroupBytes * b.operand_stride;
    for (std::uint32_t i = 0; i < b.n_cols; i += kBroadUnits, x += step)
        add_units<kRows>(sums, b, i, smaller(b.n_cols, i + kBroadUnits), x, b.operand_stride, fetch);
    store_totals<kRows>(sums, b);
}

/// As that of product.h, with a broad group for a step.
template<std::uint32_t kRows, BroadGroups W, std::uint32_t kPanels>
void tiles_product(const Block<W, kPanels>& b, const RowTile* tiles, std::uint32_t n_tiles, std::size_t offset) {
    alignas(64) float sums[kFewRows * kPanels * kLanes];
    for (std::uint32_t i = 0; i < n_tiles * kRows * kPanels; ++i) store(splat(0.0f), sums + i * kLanes);
    for (std::uint32_t i = 0; i < b.n_cols; i += kBroadUnits, offset += kBroadUnits * ColumnGroup<W>::kWords) {
        const std::uint32_t end = smaller(b.n_cols, i + kBroadUnits);
        float* sum = sums;
        for (std::uint32_t t = 0; t < n_tiles; ++t, sum += kRows * kPanels * kLanes) {
            const std::size_t n_packed = tiles[t].packed;
            const auto* x = reinterpret_cast<const std::byte*>(tiles[t].operand + offset * n_packed);
            const auto fetch =
                [&, line = t % 2 * 64 ](const auto& weight, std::size_t unit, std::size_t group, std::size_t pair,
                                        const std::byte*) __attribute__((always_inline)) {
                fetch_pair<true>(weight, group, pair, ahead_of(b, unit) + line, false);
            };
            if (tiles[t].n_rows == kRows)
                add_units<kRows>(sum, b, i, end, x, n_packed, fetch);
            else if constexpr (kRows > 1)
                add_units<kRows - 1>(sum, b, i, end, x, n_packed, fetch);
        }
    }
    store_totals<kRows>(sums, tiles, n_tiles, b);
}

}  // namespace
}  // namespace fovea
