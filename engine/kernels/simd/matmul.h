// Matrix products with the epilogues of Matmul. A microkernel multiplies one block of columns: product.h's for f32, f16
// and bf16 panels, matmul_q.h's for quantized ones.
#pragma once
#include "engine/kernels/lanes/math.h"
#include "engine/kernels/simd/product.h"

namespace fovea {
namespace {

// Rows whose totals are kept on the stack while two panels pass over them: a multiple of kRowBlock.
inline constexpr std::uint32_t kMostRows = 16 * kRowBlock;

// A tiny model's f32 matrices are in the cache since the last token, and there fetching them again only takes time.
inline constexpr std::size_t kCachedBytes = 256 << 10;
inline constexpr std::uint32_t kCachedStreams = 4;  // read at once there: a line a cycle is what the cache gives

// Panels of so many units are read side by side even if long ones go one after another: beginning one takes a while.
inline constexpr std::uint32_t kShortPanel = 4;

// Bytes that all streams of few rows together are fetched ahead: so much is under way when they wait for memory. The
// CPU's own prefetcher also serves the second-level cache; farther ahead would only mislead it.
inline constexpr std::size_t kAheadTogether = 8 << 10, kAheadInSecond = 1 << 10;

/// The unit that a panel of W repeats: a column of sixteen elements. matmul_q.h has another for quants.
template<class W>
struct ColumnGroup {
    using Shape = Tiling;
    using Wide = float;  // to what weights are widened for many rows
    static constexpr std::uint32_t kCols = 1;
    static constexpr std::size_t kUnitBytes = kLanes * sizeof(W);
    static constexpr std::size_t kWords = 1;                  // of four bytes in one row's operand
    static constexpr std::uint32_t kGemvRows = kFewRows;      // rows up to which the weights go by as they are
    static constexpr std::uint32_t kLoneRows = Shape::kRows;  // rows up to which a tile has a kernel of its own
    static constexpr std::uint32_t kSecondLevelRows = 4;      // up to which Matmul::second_level is obeyed
    template<std::uint32_t kRows>
    static constexpr std::size_t kStartBytes = 0;  // see make_starts
    /// The offset in a panel, in W, of the unit that starts a block of columns.
    static constexpr std::size_t weight_at(std::size_t unit) { return unit * kLanes; }
    static void widen(const W* from, std::uint32_t n_units, float* to) {
        for (std::size_t i = 0; i < n_units * kLanes; i += kLanes) store(load(from + i), to + i);
    }
};
template<class W>
inline constexpr bool kIsQuants = ColumnGroup<W>::kCols > 1;
template<class W>
inline constexpr std::uint32_t kBlockUnits = kColumnBlock / ColumnGroup<W>::kCols;
template<class W>
inline constexpr std::size_t kUnitBytes = ColumnGroup<W>::kUnitBytes;
/// Units that a stream is fetched ahead: for quants, whose panels may be short, the nearest number of whole panels.
template<class W>
inline constexpr std::uint32_t kAheadUnits = (kAheadBytes + kUnitBytes<W> / 2) / kUnitBytes<W>;
/// The same for one of kPanels streams, which share kTogether bytes: one at least.
template<class W, std::uint32_t kPanels, std::size_t kTogether>
inline constexpr std::uint32_t kAheadOfStream = kTogether / kPanels < kUnitBytes<W>
                                                    ? 1
                                                    : (kTogether / kPanels + kUnitBytes<W> / 2) / kUnitBytes<W>;

/// Units of the matrix's panels.
template<class W>
FOVEA_LANES std::uint32_t n_units(const Matmul& m) {
    return m.n_cols / ColumnGroup<W>::kCols + (m.n_cols % ColumnGroup<W>::kCols != 0);
}

/// The operand's block of `packed` rows that starts with row `row`, from a unit on. The unit decides what it holds; a
/// row is four bytes after another in any case.
template<class W>
FOVEA_LANES const float* operand_at(const Matmul& m, std::uint32_t row, std::uint32_t packed, std::uint32_t unit) {
    return static_cast<const float*>(m.operand) +
           (std::size_t{row} * n_units<W>(m) + std::size_t{packed} * unit) * ColumnGroup<W>::kWords;
}

/// What kOutliers outlier columns add to totals. A panel's weights stay in registers.
template<std::uint32_t kOutliers>
FOVEA_LANES void add_outlier_columns(const Matmul& m, const Totals& t) {
    const float* const x = m.outliers(t.row);
    for (std::uint32_t p = 0; p < t.n_panels; ++p) {
        const auto* weights = reinterpret_cast<const Half*>(m.panels + (t.panel + p) * m.panel_stride + m.outliers_at);
        F32x16 column[kOutliers];
        FOVEA_UNROLL for (std::uint32_t i = 0; i < kOutliers; ++i) column[i] = load(weights + i * kLanes);
        for (std::uint32_t r = 0; r < t.n_rows; ++r) {
            float* const at = t.at + r * t.stride + p * kLanes;
            F32x16 sum = load(at);
            FOVEA_UNROLL for (std::uint32_t i = 0; i < kOutliers; ++i) {
                sum = fma(x[std::size_t{r} * kOutliers + i], column[i], sum);
            }
            store(sum, at);
        }
    }
}

/// Takes totals to `out`. The activation is a template's argument so that the rows' loop does not ask for it.
template<Activation kActivation>
void finish_as(const Matmul& matmul, const Totals& totals) {
    const Matmul m = matmul;  // copies: the stores below might else change them for all the compiler knows
    const Totals t = totals;
    const bool gated = m.epilogue == Epilogue::gate, add = m.epilogue == Epilogue::add;
    for (std::uint32_t p = 0; p < t.n_panels; p += gated ? 2 : 1) {
        const std::uint32_t col = (gated ? (t.panel + p) / 2 : t.panel + p) * kLanes;
        if (col >= m.n_rows) return;
        const std::uint32_t width = smaller(kLanes, m.n_rows - col);
        const float* bias = m.bias ? m.bias + (t.panel + p) * kLanes : nullptr;
        const auto y = [&](std::uint32_t r, std::uint32_t of_pair) {
            const F32x16 sum = load(t.at + r * t.stride + (p + of_pair) * kLanes);
            return bias ? sum + load(bias + of_pair * kLanes) : sum;
        };
        for (std::uint32_t r = 0; r < t.n_rows; ++r) {
            float* out = m.row(t.row + r) + col;
            F32x16 x = activate(kActivation, y(r, 0));
            if (gated) x = x * gated_factor(kActivation, y(r, 1));
            if (add) x = (width == kLanes ? load(out) : load_part(out, width)) + x;
            if (m.canonical) x = canonical(x);
            width == kLanes ? store(x, out) : store_part(x, out, width);
        }
    }
}

template<int kNumber = 0>
void finish_from(const Matmul& m, const Totals& t) {
    if constexpr (kNumber + 1 < kActivationsBuilt)
        if (m.activation != static_cast<Activation>(kNumber)) return finish_from<kNumber + 1>(m, t);
    finish_as<static_cast<Activation>(kNumber)>(m, t);
}

/// The same of a product with a quantized type, which may have outlier columns.
[[maybe_unused]] void finish_quants(const Matmul& m, const Totals& t) {
    const auto add = [&]<std::uint32_t kOutliers>() __attribute__((always_inline)) {
        add_outlier_columns<kOutliers>(m, t);
    };
    if (has(Part::columns) && m.n_outliers) with_rows<1, kMaxOutliers>(m.n_outliers, add);
    finish_from(m, t);
}

/// The same of a product of W.
template<class W>
void finish(const Matmul& m, const Totals& t) {
    if constexpr (kIsQuants<W>)
        QuantsOf<Isa::FOVEA_ISA, Type::q8>::finish(m, t);
    else
        finish_from(m, t);
}

/// Points kPanels streams at a unit of the panels from `panel` on. Past the last panel that one is repeated: its
/// product costs little once it is in the cache, and is not stored.
template<class W, std::uint32_t kPanels>
FOVEA_LANES void point(const W* (&weight)[kPanels], const Matmul& m, std::uint32_t panel, std::uint32_t unit) {
    for (std::uint32_t p = 0; p < kPanels; ++p) {
        const std::byte* start = m.panels + smaller(panel + p, m.panel_end - 1) * m.panel_stride;
        weight[p] = reinterpret_cast<const W*>(start) + ColumnGroup<W>::weight_at(unit);
    }
}

// Bytes of an operand's starts, as far as they are made once for all panels.
inline constexpr std::size_t kMostStarts = 8 << 10;

/// At most kRows rows: the weights are read once, kPanels panels side by side. Several hide the latency of each other's
/// chain of fma. Memory delivers one alone fastest, if a step of its chain stands for many products. product(block,
/// unit) multiplies a block of columns from that unit on, and fetches the one `ahead` units further.
template<std::uint32_t kRows, std::uint32_t kPanels, class W, class Product>
FOVEA_LANES void gemv(const Matmul& m, std::uint32_t ahead, Product&& product) {
    constexpr std::uint32_t kTogether = kPanels < 2 ? 2 : kPanels;  // gate and up are finished together
    alignas(64) float total[kRows * kTogether * kLanes];
    const std::uint32_t n = n_units<W>(m);
    for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += kTogether) {
        for (std::uint32_t p = 0; p < kTogether; p += kPanels) {
            for (std::uint32_t unit = 0; unit < n; unit += kBlockUnits<W>) {
                Block<W, kPanels> b{.weight = {},
                                    .operand = nullptr,
                                    .operand_stride = 0,
                                    .n_cols = smaller(kBlockUnits<W>, n - unit),
                                    .first = unit == 0,
                                    .total = total + p * kLanes,
                                    .total_stride = kTogether * kLanes,
                                    .ahead = {},
                                    .ahead_step = kUnitBytes<W>,
                                    .ahead_cols = n - unit - smaller(n - unit, ahead),
                                    .ahead_jump = kPanels * m.panel_stride - n * kUnitBytes<W>};
                point(b.weight, m, panel + p, unit);
                for (std::uint32_t q = 0; q < kPanels; ++q)
                    b.ahead[q] = reinterpret_cast<const std::byte*>(b.weight[q]) + ahead * kUnitBytes<W>;
                product(b, unit);
            }
        }
        finish<W>(m, {total, kTogether * kLanes, 0, m.seq_len, panel, smaller(kTogether, m.panel_end - panel)});
    }
}

/// gemv of kRows rows, which are one tile.
template<std::uint32_t kRows, std::uint32_t kPanels, Fetch kFetch, class W>
void one_tile(const Matmul& m) {
    const bool second_level = kRows <= ColumnGroup<W>::kSecondLevelRows && m.second_level;
    const std::uint32_t ahead =
        second_level ? kAheadOfStream<W, kPanels, kAheadInSecond> : kAheadOfStream<W, kPanels, kAheadTogether>;
    const std::uint32_t n = n_units<W>(m);
    constexpr std::size_t kStartBytes = ColumnGroup<W>::template kStartBytes<kRows>;
    std::byte starts[kStartBytes ? kMostStarts : 1];
    const bool knows_starts = kStartBytes != 0 && n <= kMostStarts / (kStartBytes ? kStartBytes : 1);
    if constexpr (kStartBytes != 0)
        if (knows_starts) ColumnGroup<W>::template make_starts<kRows>(operand_at<W>(m, 0, kRows, 0), n, starts);
    const auto product = [&](Block<W, kPanels> & b, std::uint32_t unit) __attribute__((always_inline)) {
        b.operand = operand_at<W>(m, 0, kRows, unit);
        b.operand_stride = kRows;
        b.second_level = second_level;
        b.starts = knows_starts ? starts + unit * kStartBytes : nullptr;
        microkernel<kRows, kFetch>(b);
    };
    gemv<kRows, kPanels, W>(m, ahead, product);
}

/// gemv of more rows: each of the operand's blocks is cut into as many tiles as it takes, of sizes as equal as
/// possible. The tiles after the first find the weights in the first-level cache.
template<class W>
void several_tiles(const Matmul& m) {
    constexpr std::uint32_t kMost = ColumnGroup<W>::Shape::kRows,
                            kPanels = panels_for<typename ColumnGroup<W>::Shape>(kMost);
    static_assert(kRowBlock % kMost == 0 && kFewRows % kRowBlock == 0);
    RowTile tiles[kFewRows / kMost];
    const std::uint32_t block = row_block(m.seq_len), n = (block + kMost - 1) / kMost;
    std::uint32_t n_all = 0;
    for (std::uint32_t start = 0; start < m.seq_len; start += block) {
        const std::uint32_t packed = smaller(block, m.seq_len - start);
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::uint32_t row = packed * i / n;
            tiles[n_all++] = {operand_at<W>(m, start, packed, 0) + row, packed, packed * (i + 1) / n - row};
        }
    }
    constexpr std::uint32_t kLeast = smaller(ColumnGroup<W>::kLoneRows + 1, kMost / 2);
    const auto product = [&](const Block<W, kPanels>& b, std::uint32_t unit) __attribute__((always_inline)) {
        tiles_product<kLeast>(b, tiles, n_all, std::size_t{unit} * ColumnGroup<W>::kWords);
    };
    gemv<kFewRows, kPanels, W>(m, kAheadOfStream<W, kPanels, kAheadTogether>, product);
}

/// gemv for a number of rows that is only known now: up to kRows in one tile.
template<std::uint32_t kRows, class W>
void gemv_of(const Matmul& m) {
    using Shape = typename ColumnGroup<W>::Shape;
    if constexpr (kRows < ColumnGroup<W>::kGemvRows)
        if (m.seq_len > kRows) return several_tiles<W>(m);
    if constexpr (kRows <= Shape::kStreamRows)
        if (m.seq_len == kRows && n_units<W>(m) > kShortPanel) return one_tile<kRows, 1, Fetch::first, W>(m);
    if (m.seq_len == kRows) return one_tile<kRows, panels_for<Shape>(kRows), Fetch::first, W>(m);
    if constexpr (kRows > 1) gemv_of<kRows - 1, W>(m);
}

/// microkernel for a number of rows that is only known now, 1 to kRows.
template<std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void microkernel_of(std::uint32_t n_rows, const Block<W, kPanels>& b) {
    if (n_rows == kRows) return microkernel<kRows, Fetch::second>(b);
    if constexpr (kRows > 1) microkernel_of<kRows - 1>(n_rows, b);
}

/// Two panels and one block of their columns.
template<class W>
struct Pair {
    const W* weight[2];
    std::uint32_t panel;  // of the matrix: the first of the two
    std::uint32_t unit, n_units;
    const std::byte* ahead[2];  // the pair that comes next, of ahead_bytes a panel
    std::size_t ahead_bytes;
};

/// A pair times rows [row, row_end) of the operand, into total [row_end − row][2·16]. After its last columns a block of
/// rows is finished at once, so that its stores drain behind the next block's product.
template<class W>
void two_panels(const Matmul& m, const Pair<W>& pair, std::uint32_t row, std::uint32_t row_end, float* total) {
    using Shape = typename ColumnGroup<W>::Shape;
    constexpr std::uint32_t kRows = Shape::kRows, kPanels = smaller(panels_for<Shape>(kRows), 2);
    const std::uint32_t passes = (row_end - row + kRows - 1) / kRows;
    const std::size_t step = pair.ahead_bytes / (passes * pair.n_units) + 1;
    std::size_t fetched = 0;
    const std::uint32_t block = row_block(m.seq_len), n = n_units<W>(m);
    const std::size_t col = (m.epilogue == Epilogue::gate ? pair.panel / 2 : pair.panel) * kLanes;
    for (std::uint32_t start = row; start < row_end; start += block) {
        const std::uint32_t packed = smaller(block, m.seq_len - start);
        const float* operand = operand_at<W>(m, start, packed, pair.unit);
        for (std::uint32_t r = 0; r < packed; r += kRows, fetched += step * pair.n_units)
            for (std::uint32_t p = 0; p < 2; p += kPanels) {
                Block<W, kPanels> b{.weight = {},
                                    .operand = operand + r,
                                    .operand_stride = packed,
                                    .n_cols = pair.n_units,
                                    .first = pair.unit == 0,
                                    .total = total + (start - row + r) * 2 * kLanes + p * kLanes,
                                    .total_stride = 2 * kLanes,
                                    .ahead = {},
                                    .ahead_step = step,
                                    .next_rows = std::size_t{packed} * n * ColumnGroup<W>::kWords * sizeof(float),
                                    .out = m.out_rows ? nullptr : m.row(start + r) + col + p * kLanes,
                                    .out_stride = m.out_stride,
                                    .cols_left = n - pair.unit};
                for (std::uint32_t q = 0; q < kPanels; ++q) {
                    b.weight[q] = pair.weight[p + q];
                    b.ahead[q] = pair.ahead[p + q] + fetched;
                }
                microkernel_of<kRows>(smaller(kRows, packed - r), b);
            }
        if (pair.unit + pair.n_units == n)
            finish<W>(m, {total + (start - row) * 2 * kLanes, 2 * kLanes, start, packed, pair.panel,
                          smaller(2, m.panel_end - pair.panel)});
    }
}

/// Weights as they are if the product wants them so, else widened into `wide`.
template<class W>
FOVEA_LANES const W* widened(const W* weight, std::uint32_t, W*) {
    return weight;
}
template<class W, class Wide>
FOVEA_LANES const Wide* widened(const W* weight, std::uint32_t n_units, Wide* wide) {
    ColumnGroup<W>::widen(weight, n_units, wide);
    return wide;
}

/// Rows of the operand to keep in the cache together: whole blocks, and evenly shared out.
template<class W>
std::uint32_t rows_together(const Matmul& m) {
    const std::size_t row_bytes = n_units<W>(m) * ColumnGroup<W>::kWords * sizeof(float);
    const std::size_t fitting = ColumnGroup<W>::Shape::kOperandBytes / (row_bytes * kRowBlock);
    const std::uint32_t most = fitting < 1 ? 1 : smaller(static_cast<std::uint32_t>(fitting), kMostRows / kRowBlock);
    const std::uint32_t blocks = (m.seq_len + kRowBlock - 1) / kRowBlock, groups = (blocks + most - 1) / most;
    return (blocks + groups - 1) / groups * row_block(m.seq_len);
}

/// Many rows: as many as fit the cache stay there while the panels pass by two at a time. A block of narrow weights is
/// widened once for all of them.
template<class W>
void gemm(const Matmul& m) {
    using Wide = typename ColumnGroup<W>::Wide;
    constexpr std::uint32_t kBlock = kBlockUnits<W>;
    alignas(64) float total[kMostRows * 2 * kLanes];
    alignas(64) Wide wide[2][kBlock * kUnitBytes<Wide> / sizeof(Wide)];
    const std::uint32_t n_rows = rows_together<W>(m), n = n_units<W>(m);
    for (std::uint32_t row = 0; row < m.seq_len; row += n_rows) {
        const std::uint32_t row_end = smaller(m.seq_len, row + n_rows);
        for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += 2) {
            for (std::uint32_t unit = 0; unit < n; unit += kBlock) {
                const W *weight[2], *next[2];
                const std::uint32_t units = smaller(kBlock, n - unit);
                const std::uint32_t next_unit = unit + units < n ? unit + units : 0;
                point(weight, m, panel, unit);
                point(next, m, next_unit ? panel : panel + 2, next_unit);
                Pair<Wide> pair{.weight = {},
                                .panel = panel,
                                .unit = unit,
                                .n_units = units,
                                .ahead = {},
                                .ahead_bytes = smaller(kBlock, n - next_unit) * kUnitBytes<W>};
                for (std::uint32_t p = 0; p < 2; ++p) {
                    pair.weight[p] = widened(weight[p], units, wide[p]);
                    pair.ahead[p] = reinterpret_cast<const std::byte*>(next[p]);
                }
                if constexpr (kIsQuants<W>)
                    QuantsOf<Isa::FOVEA_ISA, ColumnGroup<Wide>::Unit::kType>::two_panels(m, &pair, row, row_end, total);
                else
                    two_panels(m, pair, row, row_end, total);
            }
        }
    }
}

template<class W>
void matmul(const Matmul& m) noexcept {
    if (m.seq_len > ColumnGroup<W>::kGemvRows) return gemm<W>(m);
    if constexpr (sizeof(W) == sizeof(float)) {
        const std::size_t weight_bytes = (m.panel_end - m.panel_begin) * m.panel_stride;
        if (m.seq_len == 1 && weight_bytes <= kCachedBytes)
            return one_tile<1, smaller(panels_for(1), kCachedStreams), Fetch::nothing, W>(m);
    }
    gemv_of<ColumnGroup<W>::kLoneRows, W>(m);
}

}  // namespace
}  // namespace fovea
