// One chunk of attention for rows that share a key-value head, over f32 and f16 caches. Scores and the weighted sum are
// panel products: of key panels with the query, and of value rows (sixteen dims are a panel, positions its columns) with
// the weights. A tile's scores never leave the stack.
#pragma once
#include "math.h"
#include "product.h"

namespace fovea {
namespace {

inline constexpr std::uint32_t kTilePanels = kTile / kLanes;
inline constexpr std::uint32_t kMinusInfinity = 0xff800000u;

/// A tile's scores, then weights, and the running state that is not kept in Attend.
struct Tile {
    alignas(64) float score[kRowBlock * kTile];   // [row][position]; weights after weigh
    alignas(64) float l[kRowBlock * kLanes];      // [row]: sums of weights by lane
    alignas(64) float m_old[kLanes], m_new[kLanes], decay[kLanes];  // [row]
    std::uint32_t begin, end;                     // positions of this tile that any row sees
};

/// Positions of the tile that starts at `base` which row r sees, as lanes [begin, end) of it; begin >= end: none.
struct Seen { int begin, end; };
FOVEA_LANES Seen seen(const Attend& a, std::uint32_t r, std::uint32_t base) {
    const std::uint32_t end = smaller(a.last[r], base + kTile);
    const std::uint32_t begin = a.first[r] < base ? base : a.first[r];
    return begin < end ? Seen{static_cast<int>(begin - base), static_cast<int>(end - base)} : Seen{0, 0};
}

/// Dot products of kRows rows from row `row` on with the key panels [panel, panel_end) of the tile at `base`.
template <std::uint32_t kRows, class W>
void score_rows(const Attend& a, std::uint32_t row, std::uint32_t base, std::uint32_t panel, std::uint32_t panel_end,
                float* score) {
    constexpr std::uint32_t kPanels = smaller(panels_for(kRows), kTilePanels);
    const std::size_t panel_size = std::size_t{a.head_dim} * kLanes;
    const W* keys = reinterpret_cast<const W*>(a.keys) + base / kLanes * panel_size;
    for (panel = panel / kPanels * kPanels; panel < panel_end; panel += kPanels)
        for (std::uint32_t col = 0; col < a.head_dim; col += kColumnBlock) {
            Block<W, kPanels> b{{}, a.query + std::size_t{col} * a.n_rows + row, a.n_rows,
                                smaller(kColumnBlock, a.head_dim - col), col == 0,
                                score + row * kTile + panel * kLanes, kTile, {}, 0};
            for (std::uint32_t p = 0; p < kPanels; ++p)
                b.weight[p] = keys + smaller(panel + p, panel_end - 1) * panel_size + std::size_t{col} * kLanes;
            block_product<kRows, Fetch::nothing>(b);
        }
}

template <std::uint32_t kRows, class W>
void score_rows_of(std::uint32_t n_rows, const Attend& a, std::uint32_t row, std::uint32_t base, std::uint32_t panel,
                   std::uint32_t panel_end, float* score) {
    if (n_rows == kRows) return score_rows<kRows, W>(a, row, base, panel, panel_end, score);
    if constexpr (kRows > 1) score_rows_of<kRows - 1, W>(n_rows, a, row, base, panel, panel_end, score);
}

/// Scales, caps and masks the tile's dot products and finds each row's new maximum. A row that sees nothing is given a
/// decay of exp(0 − 0).
inline void mask_scores(const Attend& a, Tile& t, std::uint32_t base) {
    const F32x16 scale = splat(a.scale), cap = splat(a.softcap), unseen = floats(splat_bits(kMinusInfinity));
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        const Seen s = seen(a, r, base);
        t.m_old[r] = t.m_new[r] = 0.0f;
        if (s.begin >= s.end) continue;
        F32x16 score[kTilePanels], top = unseen;
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kTilePanels; ++p) {
            const int lane = static_cast<int>(p * kLanes);
            score[p] = load(t.score + r * kTile + p * kLanes) * scale;
            if (a.softcap != 0.0f) score[p] = softcap(score[p], cap);
            score[p] = select(lanes_between(s.begin - lane, s.end - lane), score[p], unseen);
            store(score[p], t.score + r * kTile + p * kLanes);
            top = max(top, score[p]);
        }
        const float m = a.m[r], tile_m = fold_max(top);
        t.m_old[r] = m;
        t.m_new[r] = a.m[r] = m > tile_m ? m : tile_m;
    }
    const F32x16 m_old = load(t.m_old), decay = exp(m_old - load(t.m_new));
    store(select(m_old == unseen, splat(1.0f), decay), t.decay);
}

/// Turns scores into weights exp(score − m), zero where unseen, and adds them to l.
inline void weigh(const Attend& a, Tile& t, std::uint32_t base) {
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        const Seen s = seen(a, r, base);
        const F32x16 m = splat(t.m_new[r]);
        float* weight = t.score + r * kTile;
        F32x16 l = load(t.l + r * kLanes) * splat(t.decay[r]);
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kTilePanels; ++p) {
            const int lane = static_cast<int>(p * kLanes);
            const F32x16 e = exp(load(weight + p * kLanes) - m);
            const F32x16 w = select(lanes_between(s.begin - lane, s.end - lane), e, splat(0.0f));
            store(w, weight + p * kLanes);
            l = l + w;
        }
        store(l, t.l + r * kLanes);
    }
}

/// o = o·decay, then o = fma(weight, value, o) over the tile's positions in order, for kRows rows from row `row` on.
template <std::uint32_t kRows, class W>
void add_values(const Attend& a, const Tile& t, std::uint32_t row, std::uint32_t base) {
    constexpr std::uint32_t kPanels = smaller(panels_for(kRows), kTilePanels);
    const std::uint32_t n_panels = a.value_stride / kLanes;
    const W* values = reinterpret_cast<const W*>(a.values) + std::size_t{t.begin} * a.value_stride;
    float* o = a.o + std::size_t{row} * a.value_stride;
    for (std::uint32_t panel = 0; panel < n_panels; panel += kPanels) {
        const W* value[kPanels];
        F32x16 sum[kRows][kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            const std::uint32_t at = smaller(panel + p, n_panels - 1) * kLanes;  // past the last: repeated, not stored
            value[p] = values + at;
            FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r)
                sum[r][p] = load(o + r * a.value_stride + at) * splat(t.decay[row + r]);
        }
        accumulate<kTile>(sum, value, a.value_stride, t.score + row * kTile + (t.begin - base), 1, t.end - t.begin,
                          [](std::size_t) {});
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p)
            if (panel + p < n_panels)
                FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r)
                    store(sum[r][p], o + r * a.value_stride + (panel + p) * kLanes);
    }
}

template <std::uint32_t kRows, class W>
void add_values_of(std::uint32_t n_rows, const Attend& a, const Tile& t, std::uint32_t row, std::uint32_t base) {
    if (n_rows == kRows) return add_values<kRows, W>(a, t, row, base);
    if constexpr (kRows > 1) add_values_of<kRows - 1, W>(n_rows, a, t, row, base);
}

/// The same sum without the pairs whose weight is 0, for caches that hold values that are not finite.
template <class W>
void add_values_seen(const Attend& a, const Tile& t, std::uint32_t base) {
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        float* o = a.o + std::size_t{r} * a.value_stride;
        for (std::uint32_t i = 0; i < a.value_stride; i += kLanes) store(load(o + i) * splat(t.decay[r]), o + i);
        for (std::uint32_t pos = t.begin; pos < t.end; ++pos) {
            const float weight = t.score[r * kTile + (pos - base)];
            if (weight == 0.0f) continue;
            const W* value = reinterpret_cast<const W*>(a.values) + std::size_t{pos} * a.value_stride;
            for (std::uint32_t i = 0; i < a.value_stride; i += kLanes)
                store(fma(splat(weight), load(value + i), load(o + i)), o + i);
        }
    }
}

/// The chunk's tiles from the first position that any row sees to the last.
template <class W>
void attend_tiles(const Attend& a, Tile& t, std::uint32_t begin, std::uint32_t end, bool skip_zeros) {
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        a.m[r] = __builtin_bit_cast(float, kMinusInfinity);
        store(splat(0.0f), t.l + r * kLanes);
        for (std::uint32_t i = 0; i < a.value_stride; i += kLanes) store(splat(0.0f), a.o + r * a.value_stride + i);
    }
    for (std::uint32_t base = begin / kTile * kTile; base < end; base += kTile) {
        t.begin = begin < base ? base : begin;
        t.end = smaller(end, base + kTile);
        const std::uint32_t panel = (t.begin - base) / kLanes, panel_end = (t.end - base + kLanes - 1) / kLanes;
        for (std::uint32_t row = 0; row < a.n_rows; row += Tiling::kRows)
            score_rows_of<Tiling::kRows, W>(smaller(Tiling::kRows, a.n_rows - row), a, row, base, panel, panel_end,
                                            t.score);
        mask_scores(a, t, base);
        weigh(a, t, base);
        if (skip_zeros) {
            add_values_seen<W>(a, t, base);
            continue;
        }
        for (std::uint32_t row = 0; row < a.n_rows; row += Tiling::kRows)
            add_values_of<Tiling::kRows, W>(smaller(Tiling::kRows, a.n_rows - row), a, t, row, base);
    }
}

/// Multiplying by a weight of 0 is faster than looking for it, and differs only where a value is not finite (or in the
/// sign of a zero sum, which the last addition settles): then the sums are not finite either, and are made again.
template <class W>
void attend(const Attend& a) noexcept {
    Tile t;
    const std::uint32_t chunk_begin = a.chunk * kChunk;
    std::uint32_t begin = chunk_begin + kChunk, end = chunk_begin;
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        if (a.first[r] >= a.last[r]) continue;
        begin = smaller(begin, a.first[r]);
        end = end < a.last[r] ? a.last[r] : end;
    }
    begin = begin < chunk_begin ? chunk_begin : begin;
    end = smaller(end, chunk_begin + kChunk);
    for (std::uint32_t i = 0; i < kRowBlock * kTile; i += kLanes) store(splat(0.0f), t.score + i);
    store(splat(0.0f), t.m_old);
    store(splat(0.0f), t.m_new);
    attend_tiles<W>(a, t, begin, end, false);
    F32x16 difference = splat(0.0f);  // x − x is 0 where x is finite, else NaN
    for (std::uint32_t i = 0; i < a.n_rows * a.value_stride; i += kLanes)
        difference = difference + (load(a.o + i) - load(a.o + i));
    if (fold_sum(difference) != 0.0f) attend_tiles<W>(a, t, begin, end, true);
    for (std::uint32_t i = 0; i < a.n_rows * a.value_stride; i += kLanes) store(load(a.o + i) + splat(0.0f), a.o + i);
    for (std::uint32_t r = 0; r < a.n_rows; ++r) a.l[r] = fold_sum(load(t.l + r * kLanes));
}

}  // namespace
}  // namespace fovea
