// Matrix products for f32, f16 and bf16 panels, with the epilogues of Matmul.
#pragma once
#include "math.h"
#include "product.h"

namespace fovea {
namespace {

// Rows whose totals are kept on the stack while two panels pass over them: a multiple of kRowBlock.
inline constexpr std::uint32_t kMostRows = 16 * kRowBlock;

// A tiny model's f32 matrices are in the cache since the last token, and there fetching them again only takes time.
inline constexpr std::size_t kCachedBytes = 256 << 10;

FOVEA_LANES const float* float_operand(const Matmul& m) { return static_cast<const float*>(m.operand); }

/// Totals of n_panels panels from `panel` on for n_rows rows from `row` on: [row][stride], 16 per panel.
struct Totals {
    const float* at;
    std::size_t stride;
    std::uint32_t row, n_rows, panel, n_panels;
};

/// Takes totals to `out`. The activation is a template's argument so that the rows' loop does not ask for it.
template<Activation kActivation>
void finish_as(const Matmul& m, const Totals& t) {
    const bool gated = m.finish == Finish::gate, add = m.finish == Finish::add;
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
            float* out = m.out + (t.row + r) * m.out_stride + col;
            F32x16 x = activate<kActivation>(y(r, 0));
            if (gated) x = x * y(r, 1);
            if (add) x = (width == kLanes ? load(out) : load_part(out, width)) + x;
            if (m.canonical) x = canonical(x);
            width == kLanes ? store(x, out) : store_part(x, out, width);
        }
    }
}

inline void finish(const Matmul& m, const Totals& t) {
    switch (m.activation) {
        case Activation::none: return finish_as<Activation::none>(m, t);
        case Activation::relu: return finish_as<Activation::relu>(m, t);
        case Activation::gelu: return finish_as<Activation::gelu>(m, t);
        case Activation::gelu_tanh: return finish_as<Activation::gelu_tanh>(m, t);
        case Activation::silu: return finish_as<Activation::silu>(m, t);
    }
}

/// Points kPanels streams at column `col` of the panels from `panel` on. Past the last panel that one is repeated: its
/// product costs little once it is in the cache, and is not stored.
template<class W, std::uint32_t kPanels>
FOVEA_LANES void point(const W* (&weight)[kPanels], const Matmul& m, std::uint32_t panel, std::uint32_t col) {
    for (std::uint32_t p = 0; p < kPanels; ++p) {
        const std::byte* start = m.panels + smaller(panel + p, m.panel_end - 1) * m.panel_stride;
        weight[p] = reinterpret_cast<const W*>(start) + std::size_t{col} * kLanes;
    }
}

/// Up to Tiling::kRows rows: the weights are read once, several panels side by side. What decoding waits for is memory,
/// or for small matrices the latency of one chain of fma; both want many panels at once.
template<std::uint32_t kRows, Fetch kFetch, class W>
void few_rows(const Matmul& m) {
    constexpr std::uint32_t kPanels = panels_for(kRows);
    constexpr std::uint32_t kTogether = kPanels < 2 ? 2 : kPanels;  // gate and up are finished together
    alignas(64) float total[kRows * kTogether * kLanes];
    for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += kTogether) {
        for (std::uint32_t p = 0; p < kTogether; p += kPanels) {
            for (std::uint32_t col = 0; col < m.n_cols; col += kColumnBlock) {
                Block<W, kPanels> b{.weight = {},
                                    .operand = float_operand(m) + std::size_t{col} * kRows,
                                    .operand_stride = kRows,
                                    .n_cols = smaller(kColumnBlock, m.n_cols - col),
                                    .first = col == 0,
                                    .total = total + p * kLanes,
                                    .total_stride = kTogether * kLanes,
                                    .ahead = {},
                                    .ahead_step = kLanes * sizeof(W)};
                point(b.weight, m, panel + p, col);
                for (std::uint32_t q = 0; q < kPanels; ++q)
                    b.ahead[q] = reinterpret_cast<const std::byte*>(b.weight[q]) + kAheadBytes;
                block_product<kRows, kFetch>(b);
            }
        }
        finish(m, {total, kTogether * kLanes, 0, kRows, panel, smaller(kTogether, m.panel_end - panel)});
    }
}

/// few_rows for a number of rows that is only known now, 1 to kRows.
template<std::uint32_t kRows, class W>
void few_rows_of(const Matmul& m) {
    if (m.seq_len == kRows) return few_rows<kRows, Fetch::first, W>(m);
    if constexpr (kRows > 1) few_rows_of<kRows - 1, W>(m);
}

/// block_product for a number of rows that is only known now, 1 to kRows.
template<std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void block_product_of(std::uint32_t n_rows, const Block<W, kPanels>& b) {
    if (n_rows == kRows) return block_product<kRows, Fetch::second>(b);
    if constexpr (kRows > 1) block_product_of<kRows - 1>(n_rows, b);
}

/// Two panels and one block of their columns.
struct Pair {
    const float* weight[2];
    std::uint32_t panel;  // of the matrix: the first of the two
    std::uint32_t col, n_cols;
    const std::byte* ahead[2];  // the pair that comes next, of ahead_bytes a panel
    std::size_t ahead_bytes;
};

/// A pair times rows [row, row_end) of the operand, into total [row_end − row][2·16]. After its last columns a block of
/// rows is finished at once, so that its stores drain behind the next block's product.
void two_panels(const Matmul& m, const Pair& pair, std::uint32_t row, std::uint32_t row_end, float* total) {
    constexpr std::uint32_t kPanels = panels_for(Tiling::kRows);
    const std::uint32_t passes = (row_end - row + Tiling::kRows - 1) / Tiling::kRows;
    const std::size_t step = pair.ahead_bytes / (passes * pair.n_cols) + 1;
    std::size_t fetched = 0;
    for (std::uint32_t start = row; start < row_end; start += kRowBlock) {
        const std::uint32_t packed = smaller(kRowBlock, m.seq_len - start);
        const float* operand = float_operand(m) + std::size_t{start} * m.n_cols + std::size_t{pair.col} * packed;
        for (std::uint32_t r = 0; r < packed; r += Tiling::kRows, fetched += step * pair.n_cols)
            for (std::uint32_t p = 0; p < 2; p += kPanels) {
                Block<float, kPanels> b{.weight = {},
                                        .operand = operand + r,
                                        .operand_stride = packed,
                                        .n_cols = pair.n_cols,
                                        .first = pair.col == 0,
                                        .total = total + (start - row + r) * 2 * kLanes + p * kLanes,
                                        .total_stride = 2 * kLanes,
                                        .ahead = {},
                                        .ahead_step = step};
                for (std::uint32_t q = 0; q < kPanels; ++q) {
                    b.weight[q] = pair.weight[p + q];
                    b.ahead[q] = pair.ahead[p + q] + fetched;
                }
                block_product_of<Tiling::kRows>(smaller(Tiling::kRows, packed - r), b);
            }
        if (pair.col + pair.n_cols == m.n_cols)
            finish(m, {total + (start - row) * 2 * kLanes, 2 * kLanes, start, packed, pair.panel,
                       smaller(2, m.panel_end - pair.panel)});
    }
}

FOVEA_LANES const float* widen(const float* weight, std::uint32_t, float*) { return weight; }
template<class W>
FOVEA_LANES const float* widen(const W* weight, std::uint32_t n_cols, float* wide) {
    for (std::uint32_t col = 0; col < n_cols; ++col) store(load(weight + col * kLanes), wide + col * kLanes);
    return wide;
}

/// Rows of the operand to keep in the cache together: a multiple of kRowBlock, and evenly shared out.
inline std::uint32_t rows_together(std::uint32_t seq_len, std::uint32_t n_cols) {
    const std::size_t fitting = Tiling::kOperandBytes / (std::size_t{n_cols} * kRowBlock * sizeof(float));
    const std::uint32_t most = fitting < 1 ? 1 : smaller(static_cast<std::uint32_t>(fitting), kMostRows / kRowBlock);
    const std::uint32_t blocks = (seq_len + kRowBlock - 1) / kRowBlock, groups = (blocks + most - 1) / most;
    return (blocks + groups - 1) / groups * kRowBlock;
}

/// Many rows: as many as fit the cache stay there while the panels pass by two at a time. A block of narrow weights is
/// widened once for all of them.
template<class W>
void many_rows(const Matmul& m) {
    alignas(64) float total[kMostRows * 2 * kLanes];
    alignas(64) float wide[2][kColumnBlock * kLanes];
    const std::uint32_t n_rows = rows_together(m.seq_len, m.n_cols);
    for (std::uint32_t row = 0; row < m.seq_len; row += n_rows) {
        const std::uint32_t row_end = smaller(m.seq_len, row + n_rows);
        for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += 2) {
            for (std::uint32_t col = 0; col < m.n_cols; col += kColumnBlock) {
                const W *weight[2], *next[2];
                const std::uint32_t n_cols = smaller(kColumnBlock, m.n_cols - col);
                const std::uint32_t next_col = col + n_cols < m.n_cols ? col + n_cols : 0;
                point(weight, m, panel, col);
                point(next, m, next_col ? panel : panel + 2, next_col);
                Pair pair{.weight = {},
                          .panel = panel,
                          .col = col,
                          .n_cols = n_cols,
                          .ahead = {},
                          .ahead_bytes = smaller(kColumnBlock, m.n_cols - next_col) * kLanes * sizeof(W)};
                for (std::uint32_t p = 0; p < 2; ++p) {
                    pair.weight[p] = widen(weight[p], n_cols, wide[p]);
                    pair.ahead[p] = reinterpret_cast<const std::byte*>(next[p]);
                }
                two_panels(m, pair, row, row_end, total);
            }
        }
    }
}

template<class W>
void matmul(const Matmul& m) noexcept {
    if (m.seq_len > Tiling::kRows) return many_rows<W>(m);
    if constexpr (sizeof(W) == sizeof(float)) {
        const std::size_t weight_bytes = (m.panel_end - m.panel_begin) * m.panel_stride;
        if (m.seq_len == 1 && weight_bytes <= kCachedBytes) return few_rows<1, Fetch::nothing, W>(m);
    }
    few_rows_of<Tiling::kRows, W>(m);
}

}  // namespace
}  // namespace fovea
