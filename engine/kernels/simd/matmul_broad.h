// The block product of panels in broad groups: an integer sum stays in its register over 128 columns, and is scaled once.
#pragma once
#include "engine/kernels/simd/matmul_q.h"

namespace fovea {
namespace {

inline constexpr std::size_t kBroadUnits = kBroadGroup / kSuperblock;

/// sum[row][p] = fma(products of units [begin, end) of a block, w_scale·x_scale, sum[row][p]). x is their first group of
/// n_packed rows, from the first of kRows on, see Kernels::pack_broad. each_pair(weight, unit, group, pair, x of that group)
/// is called before every eight columns, to fetch the next ones.
template<std::uint32_t kRows, BroadGroups W, std::uint32_t kPanels, class EachPair>
FOVEA_LANES void add_broad(float* sum, const Block<W, kPanels>& b, std::size_t begin, std::size_t end,
                           const std::byte* x, std::size_t n_packed, EachPair&& each_pair) {
    using Unit = typename ColumnGroup<W>::Unit;
    const std::byte* const x_scales = x + kGroup * n_packed;
    const Starts<Unit::kType, kRows> starts(x, n_packed, x_scales);
    Dot dot[Unit::kPairs ? (kRows + 1) / 2 * 2 : kRows][kPanels] = {};
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) dot[r][p] = begin_sum<Unit::kType>(starts.of(r));
    }
    Unit weight[kPanels];
    GroupFactors<kPanels> factors;
    const auto finish = [&](std::uint32_t r) __attribute__((always_inline)) {
        finish_row<Unit::kType>(SumsInMemory<kRows, kPanels>{sum}, r, dot[r], factors, starts.of(r), x_scales);
    };
    // As in add_group, a row is finished beside the next one's last products. A row or two wait only for memory.
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
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) factors.scale[p] = weight[p].scale(0);
    if constexpr (kBeside) return add_cells<kRows>(dot, weight, 1, kLastPair, x, n_packed, true, finish);
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) finish(r);
}

/// As in matmul_q.h; `begin` is the first unit of a broad group.
template<std::uint32_t kRows, Fetch kFetch, class Sums, BroadGroups W, std::uint32_t kPanels>
FOVEA_LANES void add_units(Sums sums, const Block<W, kPanels>& b, std::size_t begin, std::size_t end,
                           const std::byte* x, std::size_t n_packed, TileFetch<> to) {
    const auto fetch = [&](const auto& weight, std::size_t i, std::size_t group, std::size_t pair,
                           const std::byte* of_group) __attribute__((always_inline)) {
        if constexpr (kFetch == Fetch::first) fetch_pair(weight, group, pair, ahead_of(b, i) + to.shift, to);
        if constexpr (kFetch == Fetch::second) {
            if (group == 0 && pair == 0) fetch_next<kRows>(b, static_cast<std::uint32_t>(i));
            fetch_rows<kRows>(of_group, b, pair);
        }
    };
    for (std::size_t i = begin; i < end; i += kBroadUnits, x += kBroadUnits * 2 * kQuantGroupBytes * n_packed)
        add_broad<kRows>(sums.at, b, i, i + kBroadUnits < end ? i + kBroadUnits : end, x, n_packed, fetch);
}

}  // namespace
}  // namespace fovea
