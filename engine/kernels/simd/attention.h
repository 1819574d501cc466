// One chunk of attention for rows that share a key-value head, over f32, f16, q8 and q4 caches. Scores and the weighted sum
// are panel products: of key panels with the query, and of values with the weights. A tile's scores never leave the stack.
#pragma once
#include "engine/kernels/lanes/math.h"
#include "engine/kernels/scalar/mask.h"
#include "engine/kernels/simd/attention_values.h"

namespace fovea {
namespace {

/// Dot products of kRows rows from row `row` on with the tile's keys, which are panels of W like a matrix's.
template<std::uint32_t kRows, class W>
void score_rows(const Attend& a, std::uint32_t row, Tile& t) {
    constexpr std::uint32_t kPanels = smaller(panels_for<typename ColumnGroup<W>::Shape>(kRows), kTilePanels);
    const std::uint32_t n = (a.head_dim + ColumnGroup<W>::kCols - 1) / ColumnGroup<W>::kCols;
    const auto reference_size = static_cast<std::size_t>(kHasReferences<W> ? round_up(a.head_dim, kSuperblock) : 0);
    const std::size_t panel_size = n * kUnitBytes<W> / sizeof(W) + reference_size;
    const W* keys = reinterpret_cast<const W*>(a.keys_at(t.base));
    const auto value_step = static_cast<std::size_t>(value_panel_bytes(kCacheType<W>, a.value_head_dim)) / n;
    for (std::uint32_t panel = t.panel / kPanels * kPanels; panel < t.panel_end; panel += kPanels)
        for (std::uint32_t unit = 0; unit < n; unit += kBlockUnits<W>) {
            Block<W, kPanels> b{.weight = {},
                                .operand = a.query + std::size_t{unit} * ColumnGroup<W>::kWords * a.n_rows + row,
                                .operand_stride = a.n_rows,
                                .n_cols = smaller(kBlockUnits<W>, n - unit),
                                .first = unit == 0,
                                .total = t.score + row * kTile + panel * kLanes,
                                .total_stride = kTile,
                                .ahead = {},
                                .ahead_step = a.second_level ? value_step : kUnitBytes<W>,
                                .ahead_cols = a.second_level ? n : n - unit - smaller(n - unit, kAheadUnits<W>),
                                .ahead_jump = ((kPanels - 1) * panel_size + reference_size) * sizeof(W),
                                .second_level = a.second_level};
            for (std::uint32_t p = 0; p < kPanels; ++p) {
                b.weight[p] = keys + smaller(panel + p, t.panel_end - 1) * panel_size + ColumnGroup<W>::weight_at(unit);
                b.ahead[p] = a.second_level
                                 ? a.values_at(t.base) + ((panel + p) * n + unit) * value_step
                                 : reinterpret_cast<const std::byte*>(b.weight[p]) + kAheadUnits<W> * kUnitBytes<W>;
            }
            microkernel<kRows, kRows == Tiling::kRows ? Fetch::nothing : Fetch::first>(b);
        }
}

template<std::uint32_t kRows, class W>
void score_rows_of(std::uint32_t n_rows, const Attend& a, std::uint32_t row, Tile& t) {
    if (n_rows == kRows) return score_rows<kRows, W>(a, row, t);
    if constexpr (kRows > 1) score_rows_of<kRows - 1, W>(n_rows, a, row, t);
}

/// Whether all rows see the whole tile and their scores are only scaled, as most are.
inline bool is_plain(const Attend& a, const Tile& t) {
    bool plain = !a.masks && !a.slopes && a.softcap == 0.0f;
    for (std::uint32_t r = 0; r < a.n_rows; ++r) plain &= a.first[r] <= t.base && a.last[r] >= t.base + kTile;
    return plain;
}

/// Scores of row r less its slope times the distance, for keys from position `pos` on.
FOVEA_LANES F32x16 add_slope(const Attend& a, std::uint32_t r, std::uint32_t pos, F32x16 score) {
    alignas(64) static constexpr float kLane[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const F32x16 ahead = (splat(static_cast<float>(pos)) + load(kLane)) - splat(a.positions[r]);
    return fma(splat(-a.slopes[r]), max(ahead, splat(0.0f) - ahead), score);
}

/// Calls body(p, add, mask) for the tile's panels; add(x) is x plus the masks' sum, mask(x, y) x in the lanes that row
/// r sees, else y.
template<class Body>
FOVEA_LANES void for_panels(const Attend& a, const Tile& t, std::uint32_t r, Seen s, Body&& body) {
    const F32x16 hidden = floats(splat_bits(kMinusInfinity));
    for (std::uint32_t p = t.panel; p < t.panel_end; ++p) {
        const int lane = static_cast<int>(p * kLanes);
        const Mask16 lanes = lanes_between(s.begin - lane, s.end - lane);
        if (a.masks) {
            const F32x16 bias = load(t.bias + r * kTile + p * kLanes);
            body(
                p, [&](F32x16 x) { return x + bias; },
                [&](F32x16 x, F32x16 y) { return select(lanes, select(bias == hidden, y, x), y); });
        } else {
            body(
                p, [](F32x16 x) { return x; }, [&](F32x16 x, F32x16 y) { return select(lanes, x, y); });
        }
    }
}

/// 32 of row r's quants, one after the other, as floats.
FOVEA_LANES void load_query(const Attend& a, std::uint32_t r, std::uint32_t dim, F32x16 (&query)[2]) {
    const std::byte* group = reinterpret_cast<const std::byte*>(a.query) + dim / kGroup * kQuantGroupBytes * a.n_rows;
    alignas(32) std::int8_t quants[kGroup];
    FOVEA_UNROLL for (std::size_t cell = 0; cell < kGroup / 4; ++cell) {
        __builtin_memcpy(quants + 4 * cell, group + (cell * a.n_rows + r) * 4, 4);
    }
    const F32x16 scale = splat(number(group + kGroup * a.n_rows + 4 * r));
    query[0] = load(quants) * scale;
    query[1] = load(quants + kLanes) * scale;
}

/// Adds to the dot products of a q4 cache those with the panels' references.
inline void add_references(const Attend& a, Tile& t) {
    const auto panel_size = static_cast<std::size_t>(key_panel_bytes(Type::q4, a.head_dim));
    const std::byte* first = a.keys_at(t.base) + panel_bytes(kKeyTypeOfQ4, a.head_dim);
    alignas(64) float sums[kRowBlock * kTilePanels * kLanes];
    alignas(64) float lacks[kTile];
    for (std::uint32_t p = t.panel; p < t.panel_end; ++p)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            lacks[p * kLanes + lane] = lacks_reference(a.keys_at(t.base) + p * panel_size, lane);
    for (std::uint32_t i = 0; i < a.n_rows * kTilePanels * kLanes; i += kLanes) store(splat(0.0f), sums + i);
    for (std::uint32_t dim = 0; dim < a.head_dim; dim += kGroup) {
        F32x16 reference[kTilePanels][2];
        for (std::uint32_t p = t.panel; p < t.panel_end; ++p) {
            alignas(64) std::uint16_t halves[kGroup];
            for (std::uint32_t i = 0; i < kGroup; ++i)
                halves[i] = static_cast<std::uint16_t>(std::uint32_t(first[p * panel_size + dim + i]) << 8);
            FOVEA_UNROLL for (std::uint32_t i = 0; i < 2; ++i) {
                reference[p][i] = load(reinterpret_cast<const Half*>(halves) + i * kLanes);
            }
        }
        for (std::uint32_t r = 0; r < a.n_rows; ++r) {
            F32x16 query[2];
            load_query(a, r, dim, query);
            for (std::uint32_t p = t.panel; p < t.panel_end; ++p) {
                float* sum = sums + (r * kTilePanels + p) * kLanes;
                store(fma(query[1], reference[p][1], fma(query[0], reference[p][0], load(sum))), sum);
            }
        }
    }
    for (std::uint32_t r = 0; r < a.n_rows; ++r)
        for (std::uint32_t p = t.panel; p < t.panel_end; ++p) {
            float* score = t.score + r * kTile + p * kLanes;
            const float sum = fold_sum(load(sums + (r * kTilePanels + p) * kLanes));
            store(load(score) + splat(sum) * load(lacks + p * kLanes), score);
        }
}

/// Dot products of all rows with the tile's keys, and the masks' sums.
template<class W>
void score_tile(const Attend& a, Tile& t) {
    for (std::uint32_t row = 0; row < a.n_rows; row += Tiling::kRows)
        score_rows_of<Tiling::kRows, W>(smaller(Tiling::kRows, a.n_rows - row), a, row, t);
    if constexpr (kHasReferences<W>) add_references(a, t);
    for (std::uint32_t r = 0; a.masks && r < a.n_rows; ++r) sum_masks(a.masks + r * kMasks, t.base, t.bias + r * kTile);
}

/// A panel's scores for row r, −inf if unseen.
template<class Add, class Mask>
FOVEA_LANES F32x16 score_of(const Attend& a, std::uint32_t r, std::uint32_t pos, const float* dot, Add add, Mask mask) {
    F32x16 score = load(dot) * splat(a.scale);
    if (a.softcap != 0.0f) score = softcap(score, splat(a.softcap));
    if (a.slopes) score = add_slope(a, r, pos, score);
    return mask(add(score), floats(splat_bits(kMinusInfinity)));
}

/// The rows' new maxima, and what they change; `tops` are the tile's. Rows that see nothing, if `saw` is 0, stay as
/// they are.
FOVEA_LANES void update_running_max(Tile& t, F32x16 tops, F32x16 saw) {
    const F32x16 one = splat(1.0f), unseen = floats(splat_bits(kMinusInfinity)), m = load(t.m);
    const Mask16 sees = saw > splat(0.0f);
    const F32x16 m_new = select(sees, max(m, tops), m);
    store(m_new, t.m);
    store(select(sees, select(m == unseen, one, exp<true>(m - m_new)), one), t.decay);
}

/// Scales, caps and masks the tile's dot products and finds each row's new maximum.
[[gnu::flatten]] inline void mask_scores(const Attend& a, Tile& t) {
    const F32x16 unseen = floats(splat_bits(kMinusInfinity));
    F32x16 tops = unseen, saw = splat(0.0f);  // filled by lane: a load of floats stored one by one waits for them
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        const Seen s = seen(a, r, t.base);
        if (s.begin >= s.end) continue;
        F32x16 top = unseen;
        for_panels(a, t, r, s, [&](std::uint32_t p, auto add, auto mask) {
            float* at = t.score + r * kTile + p * kLanes;
            const F32x16 score = score_of(a, r, t.base + p * kLanes, at, add, mask);
            store(score, at);
            top = max(top, score);
        });
        if (t.panel_end < kTilePanels) top = max(top, unseen);  // the panels left out: this matters to NaN alone
        const Mask16 lane = lanes_between(static_cast<int>(r), static_cast<int>(r) + 1);
        tops = select(lane, splat(fold_max(top)), tops);
        saw = select(lane, splat(1.0f), saw);
    }
    update_running_max(t, tops, saw);
}

/// The same for a plain tile.
inline void scale_scores(const Attend& a, Tile& t) {
    const F32x16 scale = splat(a.scale);
    F32x16 tops = floats(splat_bits(kMinusInfinity));
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRowBlock; ++r) {
        if (r == a.n_rows) break;
        F32x16 top = floats(splat_bits(kMinusInfinity));
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kTilePanels; ++p) {
            float* at = t.score + r * kTile + p * kLanes;
            const F32x16 score = load(at) * scale;
            store(score, at);
            top = max(top, score);
        }
        tops = select(lanes_between(static_cast<int>(r), static_cast<int>(r) + 1), splat(fold_max(top)), tops);
    }
    update_running_max(t, tops, splat(1.0f));
}

/// Turns scores into weights exp(score − m), zero if unseen, and adds them to l.
template<bool kPlain>
[[gnu::flatten]] void weigh(const Attend& a, Tile& t) {
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        const F32x16 m = splat(t.m[r]);
        F32x16 l = load(t.l + r * kLanes) * splat(t.decay[r]);
        const auto panel = [&](std::uint32_t p, auto, auto mask) {
            float* weight = t.score + r * kTile + p * kLanes;
            const F32x16 w = mask(exp<true>(load(weight) - m), splat(0.0f));
            store(w, weight);
            l = l + w;
        };
        if constexpr (kPlain) {
            const auto as_it_is = [](F32x16 x, F32x16) { return x; };
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kTilePanels; ++p) panel(p, 0, as_it_is);
        } else {
            for_panels(a, t, r, seen(a, r, t.base), panel);
        }
        store(l, t.l + r * kLanes);
    }
}

/// The chunk's tiles from the first position that any row sees to the last.
template<class W>
void attend_tiles(const Attend& a, Tile& t, std::uint32_t begin, std::uint32_t end, bool skip_zeros) {
    store(floats(splat_bits(kMinusInfinity)), t.m);
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        store(splat(0.0f), t.l + r * kLanes);
        for (std::uint32_t i = 0; i < a.value_stride; i += kLanes) store(splat(0.0f), a.o + r * a.value_stride + i);
    }
    for (t.base = begin / kTile * kTile; t.base < end; t.base += kTile) {
        t.narrow(begin, end);
        score_tile<W>(a, t);
        if (is_plain(a, t)) {
            scale_scores(a, t);
            weigh<true>(a, t);
        } else {
            mask_scores(a, t);
            weigh<false>(a, t);
        }
        if (skip_zeros) {
            add_values_seen<W>(a, t);
            continue;
        }
        for (std::uint32_t row = 0; row < a.n_rows; row += Tiling::kRows)
            add_values_of<Tiling::kRows, W>(smaller(Tiling::kRows, a.n_rows - row), a, t, row);
    }
}

/// Multiplying by a weight of 0 is faster than looking for it, and differs only if a value is not finite (or in the
/// sign of a zero sum, which the last addition settles): then the sums are not finite either, and are computed again.
template<class W>
void attend(const Attend& a) noexcept {
    Tile t;
    const auto [begin, end] = hull(a, a.chunk * kChunk, kChunk);
    attend_tiles<W>(a, t, begin, end, false);
    F32x16 zeros = splat(0.0f);  // x·0 is 0 if x is finite, else NaN
    for (std::uint32_t i = 0; i < a.n_rows * a.value_stride; i += kLanes)
        zeros = fma(load(a.o + i), splat(0.0f), zeros);
    if (fold_sum(zeros) != 0.0f) attend_tiles<W>(a, t, begin, end, true);
    for (std::uint32_t i = 0; i < a.n_rows * a.value_stride; i += kLanes) store(load(a.o + i) + splat(0.0f), a.o + i);
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        a.m[r] = t.m[r];
        a.l[r] = fold_sum(load(t.l + r * kLanes));
    }
}

/// A tile's dot products as weights by the m and l that the rows ended with.
[[gnu::flatten]] inline void final_weights(const Attend& a, const Tile& t, float* weights) {
    const bool plain = is_plain(a, t);
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        const F32x16 m = splat(a.m[r]), l = splat(a.l[r]);
        const float* dots = t.score + r * kTile;
        // A score above m is a NaN's neighbour, and then l is NaN too.
        const auto panel = [&](std::uint32_t p, auto add, auto mask) {
            const F32x16 weight = exp<true>(score_of(a, r, t.base + p * kLanes, dots + p * kLanes, add, mask) - m) / l;
            store(mask(canonical(weight), splat(0.0f)), weights + r * kTile + p * kLanes);
        };
        const auto as_it_is = [](F32x16 x, auto...) { return x; };
        const Seen s = seen(a, r, t.base);
        if (s.begin >= s.end || a.l[r] == 0.0f) continue;
        if (plain)
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kTilePanels; ++p) panel(p, as_it_is, as_it_is);
        else
            for_panels(a, t, r, s, panel);
    }
}

/// A second pass over one tile, for those who want to see the weights.
template<class W>
void attend_weights(const Attend& a, std::uint32_t tile, float* weights) noexcept {
    for (std::uint32_t i = 0; i < a.n_rows * kTile; i += kLanes) store(splat(0.0f), weights + i);
    Tile t;
    t.base = tile * kTile;
    const auto [begin, end] = hull(a, t.base, kTile);
    if (begin >= end) return;
    t.narrow(begin, end);
    score_tile<W>(a, t);
    final_weights(a, t, weights);
}

}  // namespace
}  // namespace fovea
