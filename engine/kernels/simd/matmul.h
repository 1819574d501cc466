// Matrix products for f32, f16 and bf16 panels, with the epilogues of Matmul.
#pragma once
#include "math.h"
#include "product.h"

namespace fovea {
namespace {

// Rows whose totals are kept on the stack while two panels pass over them: a multiple of kRowBlock.
inline constexpr std::uint32_t kMostRows = 16 * kRowBlock;

/// Takes totals [n_rows][stride] of n_panels panels to `out`, from row `row` and panel `panel` on.
void finish(const Matmul& m, std::uint32_t row, std::uint32_t n_rows, std::uint32_t panel, std::uint32_t n_panels,
            const float* total, std::size_t stride) {
    const bool gated = m.finish == Finish::gate;
    const auto y = [&](std::uint32_t r, std::uint32_t p) {
        const F32x16 sum = load(total + r * stride + p * kLanes);
        return m.bias ? sum + load(m.bias + (panel + p) * kLanes) : sum;
    };
    for (std::uint32_t p = 0; p < n_panels; p += gated ? 2 : 1) {
        const std::uint32_t col = (gated ? (panel + p) / 2 : panel + p) * kLanes;
        if (col >= m.n_rows) return;
        const std::uint32_t width = smaller(kLanes, m.n_rows - col);
        for (std::uint32_t r = 0; r < n_rows; ++r) {
            float* out = m.out + (row + r) * m.out_stride + col;
            F32x16 x = activate(y(r, p), m.activation);
            if (gated) x = x * y(r, p + 1);
            if (m.finish == Finish::add) x = (width == kLanes ? load(out) : load_part(out, width)) + x;
            if (m.canonical) x = canonical(x);
            if (width == kLanes) store(x, out);
            else store_part(x, out, width);
        }
    }
}

/// Points kPanels streams at column `col` of the panels from `panel` on. Past the last panel that one is repeated: its
/// product costs little once it is in the cache, and is not stored.
template <class W, std::uint32_t kPanels>
FOVEA_LANES void point(const W* (&weight)[kPanels], const Matmul& m, std::uint32_t panel, std::uint32_t col) {
    for (std::uint32_t p = 0; p < kPanels; ++p) {
        const std::byte* start = m.panels + smaller(panel + p, m.panel_end - 1) * m.panel_stride;
        weight[p] = reinterpret_cast<const W*>(start) + std::size_t{col} * kLanes;
    }
}

/// Up to Tiling::kRows rows: the weights are read once, several panels side by side. What decoding waits for is memory,
/// or for small matrices the latency of one chain of fma; both want many panels at once.
template <std::uint32_t kRows, class W>
void few_rows(const Matmul& m) {
    constexpr std::uint32_t kPanels = panels_for(kRows), kTogether = kPanels < 2 ? 2 : kPanels;  // gate and up finish together
    alignas(64) float total[kRows * kTogether * kLanes];
    for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += kTogether) {
        for (std::uint32_t p = 0; p < kTogether; p += kPanels) {
            for (std::uint32_t col = 0; col < m.n_cols; col += kColumnBlock) {
                Block<W, kPanels> b{{}, m.operand + std::size_t{col} * kRows, kRows, smaller(kColumnBlock, m.n_cols - col),
                                    col == 0, total + p * kLanes, kTogether * kLanes};
                point(b.weight, m, panel + p, col);
                block_product<kRows>(b);
            }
        }
        finish(m, 0, kRows, panel, smaller(kTogether, m.panel_end - panel), total, kTogether * kLanes);
    }
}

/// few_rows for a number of rows that is only known now, 1 to kRows.
template <std::uint32_t kRows, class W>
void few_rows_of(const Matmul& m) {
    if (m.seq_len == kRows) return few_rows<kRows, W>(m);
    if constexpr (kRows > 1) few_rows_of<kRows - 1, W>(m);
}

/// block_product for a number of rows that is only known now, 1 to kRows.
template <std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void block_product_of(std::uint32_t n_rows, const Block<W, kPanels>& b) {
    if (n_rows == kRows) return block_product<kRows>(b);
    if constexpr (kRows > 1) block_product_of<kRows - 1>(n_rows, b);
}

/// Two panels, one column block, rows [row, row_end) of the operand: adds to total [row_end − row][2·16].
void two_panels(const Matmul& m, const float* const (&weight)[2], std::uint32_t col, std::uint32_t row,
                std::uint32_t row_end, float* total) {
    constexpr std::uint32_t kPanels = panels_for(Tiling::kRows);
    const std::uint32_t n_cols = smaller(kColumnBlock, m.n_cols - col);
    for (std::uint32_t start = row; start < row_end; start += kRowBlock) {
        const std::uint32_t packed = smaller(kRowBlock, m.seq_len - start);
        const float* operand = m.operand + std::size_t{start} * m.n_cols + std::size_t{col} * packed;
        for (std::uint32_t p = 0; p < 2; p += kPanels)
            for (std::uint32_t r = 0; r < packed; r += Tiling::kRows) {
                Block<float, kPanels> b{{}, operand + r, packed, n_cols, col == 0,
                                        total + (start - row + r) * 2 * kLanes + p * kLanes, 2 * kLanes};
                for (std::uint32_t q = 0; q < kPanels; ++q) b.weight[q] = weight[p + q];
                block_product_of<Tiling::kRows>(smaller(Tiling::kRows, packed - r), b);
            }
    }
}

FOVEA_LANES const float* widen(const float* weight, std::uint32_t, float*) { return weight; }
template <class W>
FOVEA_LANES const float* widen(const W* weight, std::uint32_t n_cols, float* wide) {
    for (std::uint32_t col = 0; col < n_cols; ++col) store(load(weight + col * kLanes), wide + col * kLanes);
    return wide;
}

/// Many rows: as many as fit the cache stay there while the panels pass by two at a time. A block of narrow weights is
/// widened once for all of them.
template <class W>
void many_rows(const Matmul& m) {
    alignas(64) float total[kMostRows * 2 * kLanes];
    alignas(64) float wide[2][kColumnBlock * kLanes];
    const std::size_t blocks = Tiling::kOperandBytes / (std::size_t{m.n_cols} * kRowBlock * sizeof(float));
    const std::uint32_t n_rows = blocks < 1 ? kRowBlock : blocks * kRowBlock > kMostRows ? kMostRows
                                                        : static_cast<std::uint32_t>(blocks) * kRowBlock;
    for (std::uint32_t row = 0; row < m.seq_len; row += n_rows) {
        const std::uint32_t row_end = smaller(m.seq_len, row + n_rows);
        for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += 2) {
            for (std::uint32_t col = 0; col < m.n_cols; col += kColumnBlock) {
                const std::uint32_t n_cols = smaller(kColumnBlock, m.n_cols - col);
                const W* narrow[2];
                point(narrow, m, panel, col);
                const float* const weight[2] = {widen(narrow[0], n_cols, wide[0]), widen(narrow[1], n_cols, wide[1])};
                two_panels(m, weight, col, row, row_end, total);
            }
            finish(m, row, row_end - row, panel, smaller(2, m.panel_end - panel), total, 2 * kLanes);
        }
    }
}

template <class W>
void matmul(const Matmul& m) noexcept {
    if (m.seq_len <= Tiling::kRows) few_rows_of<Tiling::kRows, W>(m);
    else many_rows<W>(m);
}

}  // namespace
}  // namespace fovea
