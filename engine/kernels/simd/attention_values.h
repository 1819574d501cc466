// A tile's weighted sum of values: value rows (sixteen dims are a panel, positions its columns) times the weights.
#pragma once
#include "engine/kernels/simd/attention_tile.h"

namespace fovea {
namespace {

/// The fetches of a sum of values: a piece for every position, the first at `at`.
struct ValueFetch {
    const std::byte* at;
    std::size_t step;
    bool second_level;
    FOVEA_LANES void piece(std::size_t pos) const { fetch_stream(at + pos * step, second_level); }
};

/// The next tile's keys, shared out over the positions of n_groups groups of dims.
template<class W>
class NextKeys {
public:
    NextKeys(const Attend& a, const Tile& t, std::uint32_t n_groups) : second_level_(a.second_level) {
        const std::size_t tile_bytes =
            kTilePanels * static_cast<std::size_t>(key_panel_bytes(kCacheType<W>, a.head_dim));
        const std::uint32_t next = t.base + kTile;
        keys_ = next % kChunk ? a.keys_at(next) : nullptr;
        if (!keys_) keys_ = a.keys_at(t.base) + tile_bytes;  // of another chunk: most often right behind
        step_ = tile_bytes / (kTile * n_groups);
    }
    /// The fetches of a group's sum from a position on; `near`: its own values, if they are not fetched so far ahead.
    FOVEA_LANES ValueFetch of(std::uint32_t group, std::uint32_t pos, const void* near, std::size_t near_step) const {
        const std::byte* far = keys_ + (group * kTile + pos) * step_;
        return {second_level_ ? far : static_cast<const std::byte*>(near), second_level_ ? step_ : near_step,
                second_level_};
    }

private:
    const std::byte* keys_;
    std::size_t step_;
    bool second_level_;
};

/// o = o·decay, then o = fma(weight, value, o) over the tile's positions in order, for kRows rows from row `row` on.
template<std::uint32_t kRows, std::uint32_t kPanels, class W>
void add_values(const Attend& a, const Tile& t, std::uint32_t row) {
    const std::uint32_t n_panels = a.value_stride / kLanes;
    const std::uint32_t begin = t.begin - t.base;
    const W* values = reinterpret_cast<const W*>(a.values_at(t.base)) + std::size_t{begin} * a.value_stride;
    float* o = a.o + std::size_t{row} * a.value_stride;
    const NextKeys<W> next(a, t, n_panels);
    for (std::uint32_t panel = 0; panel < n_panels; panel += kPanels) {
        const W* value[kPanels];
        ValueFetch fetch[kPanels];
        F32x16 sum[kRows][kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            const std::uint32_t at = smaller(panel + p, n_panels - 1) * kLanes;  // past the last: repeated, not stored
            value[p] = values + at;
            fetch[p] = next.of(panel + p, begin, value[p] + kAheadRows * a.value_stride, a.value_stride * sizeof(W));
            FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
                sum[r][p] = load(o + r * a.value_stride + at) * splat(t.decay[row + r]);
            }
        }
        accumulate<kTile>(sum, value, a.value_stride, t.score + row * kTile + begin, 1, t.end - t.begin,
                          [&](std::size_t pos) {
                              if constexpr (kRows < Tiling::kRows) {
                                  FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) { fetch[p].piece(pos); }
                              }
                          });
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            if (panel + p >= n_panels) break;
            FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
                store(sum[r][p], o + r * a.value_stride + (panel + p) * kLanes);
            }
        }
    }
}

/// A group of a quantized cache's values as int8: where they are, or for q4 looked up, the first sixteen dims of all
/// positions, then the others.
template<class W>
struct ValueGroup {
    static constexpr Type kType = kCacheType<W>;
    static constexpr std::size_t kStride = kHasReferences<W> ? kLanes : kGroup;  // from a position to the next
    static constexpr std::size_t kSecond = kHasReferences<W> ? kLanes * kLanes : kLanes;
    alignas(64) std::byte found[kHasReferences<W> ? 2 * kSecond : 1];

    FOVEA_LANES const std::int8_t* quants(const std::byte* group) {
        const std::byte* rows = group + 2 * kLanes;
        if constexpr (!kHasReferences<W>) return reinterpret_cast<const std::int8_t*>(rows);
        FOVEA_UNROLL for (std::size_t i = 0; i < kLanes * kLanes; i += 64) {
            const Bytes both = bytes(rows + i);
            store(lookup(low_nibbles(both), kCodes.of), found + i);
            store(lookup(high_nibbles(both), kCodes.of), found + kSecond + i);
        }
        return reinterpret_cast<const std::int8_t*>(found);
    }
};

/// The same for a q8 or q4 cache, 32 dims at a time: their scales go to the weights, then it is the same product.
template<std::uint32_t kRows, class W>
void add_quants(const Attend& a, const Tile& t, std::uint32_t row) {
    using Group = ValueGroup<W>;
    Group group;
    const auto panel_stride = static_cast<std::size_t>(value_panel_bytes(Group::kType, a.value_head_dim));
    const std::byte* values = a.values_at(t.base);
    alignas(64) float weight[kRows * kTile];
    const NextKeys<W> next(a, t, (a.value_stride + kGroup - 1) / kGroup);
    for (std::uint32_t dim = 0; dim < a.value_stride; dim += kGroup, values += value_group_bytes(Group::kType)) {
        const bool both = dim + kLanes < a.value_stride;
        float* o = a.o + std::size_t{row} * a.value_stride + dim;
        F32x16 sum[kRows][2];
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            const F32x16 decay = splat(t.decay[row + r]);
            sum[r][0] = load(o + r * a.value_stride) * decay;
            sum[r][1] = both ? load(o + r * a.value_stride + kLanes) * decay : splat(0.0f);
        }
        for (std::uint32_t panel = t.panel; panel < t.panel_end; ++panel) {
            const std::byte* at_panel = values + panel * panel_stride;
            const F32x16 scale = load(reinterpret_cast<const Half*>(at_panel));
            FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
                const std::uint32_t at = r * kTile + panel * kLanes;
                store(load(t.score + row * kTile + at) * scale, weight + at);
            }
            const std::uint32_t lane = t.base + panel * kLanes, begin = t.begin > lane ? t.begin - lane : 0;
            const std::int8_t* quants = group.quants(at_panel) + begin * Group::kStride;
            const std::int8_t* const value[] = {quants, quants + Group::kSecond};
            const std::size_t row_bytes = value_row_bytes(Group::kType);
            const ValueFetch fetch =
                next.of(dim / kGroup, panel * kLanes + begin, at_panel + panel_stride + begin * row_bytes, row_bytes);
            accumulate<kTile>(sum, value, Group::kStride, weight + panel * kLanes + begin, 1,
                              smaller(t.end - lane, kLanes) - begin, [&](std::size_t pos) {
                                  if constexpr (kRows < Tiling::kRows) fetch.piece(pos);
                              });
        }
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            store(sum[r][0], o + r * a.value_stride);
            if (both) store(sum[r][1], o + r * a.value_stride + kLanes);
        }
    }
}

template<std::uint32_t kRows, class W>
void add_values_of(std::uint32_t n_rows, const Attend& a, const Tile& t, std::uint32_t row) {
    constexpr std::uint32_t kPanels = smaller(panels_for(kRows), kTilePanels);
    if (n_rows == kRows) {
        if constexpr (ColumnGroup<W>::kCols > 1) return add_quants<kRows, W>(a, t, row);
        // Narrow heads of tiny models: repeated work would take longer than the chain it hides.
        else if (a.value_stride == kLanes)
            return add_values<kRows, 1, W>(a, t, row);
        else
            return add_values<kRows, kPanels, W>(a, t, row);
    }
    if constexpr (kRows > 1) add_values_of<kRows - 1, W>(n_rows, a, t, row);
}

/// The same sum without the pairs whose weight is 0, one position at a time: for caches with values that are not
/// finite.
template<class W>
void add_values_seen(const Attend& a, Tile& t) {
    const std::uint32_t begin = t.begin, end = t.end;
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        float* o = a.o + std::size_t{r} * a.value_stride;
        for (std::uint32_t i = 0; i < a.value_stride; i += kLanes) store(load(o + i) * splat(t.decay[r]), o + i);
        t.decay[r] = 1.0f;
        for (std::uint32_t pos = begin; pos < end; ++pos) {
            if (t.score[r * kTile + (pos - t.base)] == 0.0f) continue;
            t.narrow(pos, pos + 1);
            add_values_of<1, W>(1, a, t, r);
        }
    }
    t.narrow(begin, end);
}

}  // namespace
}  // namespace fovea
