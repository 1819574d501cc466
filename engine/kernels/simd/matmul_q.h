// Matrix products for q8 and q4 panels. What matmul.h does column by column is done by groups of 32 columns here: an
// exact integer sum per row, converted, scaled and added to the float sums.
#pragma once
#include "matmul.h"
#include "quants.h"

namespace fovea {
namespace {

inline constexpr std::size_t kQuantScaleBytes = kLanes * 2;
inline constexpr std::uint32_t kBlockSuperblocks = kColumnBlock / kSuperblock;
template<Type kType> inline constexpr std::size_t kQuantBytes = kPairBytes<kType> * kGroup / 8;  // of a group
template<Type kType> inline constexpr std::size_t kSuperblockBytes = 2 * (kQuantScaleBytes + kQuantBytes<kType>);

/// panels_for with QuantTiling.
[[nodiscard]] constexpr std::uint32_t quant_panels_for(std::uint32_t n_rows) {
    std::uint32_t n = QuantTiling::kStreams;
    while (n > 1 && n * n_rows > QuantTiling::kSums) n /= 2;
    return n;
}

/// At most kBlockSuperblocks superblocks of some rows times kPanels panels.
template<std::uint32_t kPanels>
struct QuantBlock {
    const std::byte* weight[kPanels];  // this block's first superblock of each panel
    const std::byte* operand;          // the same superblock of n_packed packed rows, see Kernels::pack_q8
    std::uint32_t n_packed, row;       // the first of the rows to take
    std::uint32_t n_superblocks;
    bool first;                        // of its dot product: total = sum; otherwise total = total + sum
    float* total;                      // [row][total_stride], 16 per panel
    std::size_t total_stride;
    std::size_t ahead_bytes;           // 0: nothing is fetched
};

/// sum[row][p] = fma(products of one group, w_scale·x_scale, sum[row][p]).
template<Type kType, std::uint32_t kRows, std::uint32_t kPanels>
FOVEA_LANES void add_group(F32x16 (&sum)[kRows][kPanels], const std::byte* const (&scales)[kPanels],
                           const std::byte* const (&quants)[kPanels], const std::byte* group, std::size_t n_packed,
                           std::size_t row) {
    using P = Products<kType>;
    const std::byte* x = group + row * 4;
    const std::byte* const x_scales = x + kGroup * n_packed;
    const std::byte* const starts = x_scales + (kType == Type::q8 ? 4 : 8) * n_packed;
    typename P::Sum dot[kRows][kPanels];
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r)
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) dot[r][p] = P::begin(starts + 4 * r);
    for (std::size_t pair = 0; pair < kGroup / 8; ++pair, x += 8 * n_packed) {
        typename P::Cell cell[kPanels][2];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) P::load(quants[p] + pair * kPairBytes<kType>, cell[p]);
        FOVEA_UNROLL for (std::uint32_t i = 0; i < 2; ++i)
            FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r)
                FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p)
                    dot[r][p] = P::add(dot[r][p], cell[p][i], x + i * 4 * n_packed + 4 * r);
    }
    F32x16 scale[kPanels];
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) scale[p] = load(reinterpret_cast<const Half*>(scales[p]));
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        const F32x16 x_scale = splat(__builtin_bit_cast(float, word(x_scales + 4 * r)));
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p)
            sum[r][p] = fma(P::end(dot[r][p], starts + 4 * r), scale[p] * x_scale, sum[r][p]);
    }
}

template<Type kType, std::uint32_t kRows, std::uint32_t kPanels>
void quant_block_product(const QuantBlock<kPanels>& b) {
    F32x16 sum[kRows][kPanels];
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r)
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) sum[r][p] = splat(0.0f);
    const std::size_t n_packed = b.n_packed, row = b.row;
    const std::byte* group = b.operand;
    for (std::uint32_t i = 0; i < b.n_superblocks; ++i) {
        const std::size_t at = i * kSuperblockBytes<kType>;
        if (b.ahead_bytes)
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p)
                for (std::size_t line = 0; line < kSuperblockBytes<kType>; line += 64)
                    __builtin_prefetch(b.weight[p] + at + b.ahead_bytes + line);
        for (std::size_t half = 0; half < 2; ++half, group += kQuantGroupBytes * n_packed) {
            const std::byte *scales[kPanels], *quants[kPanels];
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
                scales[p] = b.weight[p] + at + half * kQuantScaleBytes;
                quants[p] = b.weight[p] + at + 2 * kQuantScaleBytes + half * kQuantBytes<kType>;
            }
            add_group<kType>(sum, scales, quants, group, n_packed, row);
        }
    }
    float* const total = b.total;
    const std::size_t stride = b.total_stride;
    const bool first = b.first;
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r)
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            float* at = total + r * stride + p * kLanes;
            store(first ? sum[r][p] : load(at) + sum[r][p], at);
        }
}

/// Where superblock `superblock` starts in a panel; past the last panel, in the last.
template<Type kType>
FOVEA_LANES const std::byte* quants_at(const Matmul& m, std::uint32_t panel, std::size_t superblock) {
    return m.panels + smaller(panel, m.panel_end - 1) * m.panel_stride + superblock * kSuperblockBytes<kType>;
}

/// The operand's block of `packed` rows that starts with row `row`, from a superblock on.
FOVEA_LANES const std::byte* packed_at(const Matmul& m, std::uint32_t row, std::uint32_t packed,
                                       std::size_t superblock) {
    return static_cast<const std::byte*>(m.operand) + operand_bytes(Type::q8, row, m.n_cols) +
           superblock * 2 * kQuantGroupBytes * packed;
}

[[nodiscard]] FOVEA_LANES std::uint32_t superblocks(const Matmul& m) {
    return static_cast<std::uint32_t>(quant_groups(m.n_cols) / 2);
}

/// Up to QuantTiling::kRows rows: weights are read once, several panels side by side.
template<Type kType, std::uint32_t kRows>
void few_quant_rows(const Matmul& m) {
    constexpr std::uint32_t kPanels = quant_panels_for(kRows), kTogether = kPanels < 2 ? 2 : kPanels;
    alignas(64) float total[kRows * kTogether * kLanes];
    const std::uint32_t n = superblocks(m);
    for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += kTogether) {
        for (std::uint32_t p = 0; p < kTogether; p += kPanels)
            for (std::uint32_t at = 0; at < n; at += kBlockSuperblocks) {
                QuantBlock<kPanels> b{.weight = {},
                                      .operand = packed_at(m, 0, kRows, at),
                                      .n_packed = kRows,
                                      .row = 0,
                                      .n_superblocks = smaller(kBlockSuperblocks, n - at),
                                      .first = at == 0,
                                      .total = total + p * kLanes,
                                      .total_stride = kTogether * kLanes,
                                      .ahead_bytes = kAheadBytes};
                for (std::uint32_t q = 0; q < kPanels; ++q) b.weight[q] = quants_at<kType>(m, panel + p + q, at);
                quant_block_product<kType, kRows>(b);
            }
        finish(m, {total, kTogether * kLanes, 0, kRows, panel, smaller(kTogether, m.panel_end - panel)});
    }
}

/// few_quant_rows for a number of rows that is only known now, 1 to kRows.
template<Type kType, std::uint32_t kRows>
void few_quant_rows_of(const Matmul& m) {
    if (m.seq_len == kRows) return few_quant_rows<kType, kRows>(m);
    if constexpr (kRows > 1) few_quant_rows_of<kType, kRows - 1>(m);
}

/// quant_block_product for a number of rows that is only known now, 1 to kRows.
template<Type kType, std::uint32_t kRows, std::uint32_t kPanels>
FOVEA_LANES void quant_block_product_of(std::uint32_t n_rows, const QuantBlock<kPanels>& b) {
    if (n_rows == kRows) return quant_block_product<kType, kRows>(b);
    if constexpr (kRows > 1) quant_block_product_of<kType, kRows - 1>(n_rows, b);
}

/// A column block of two panels times rows [row, row_end), into total [row_end − row][2·16], finished after the last.
template<Type kType>
void two_quant_panels(const Matmul& m, std::uint32_t panel, std::uint32_t at, std::uint32_t row, std::uint32_t row_end,
                      float* total) {
    constexpr std::uint32_t kRows = QuantTiling::kRows, kPanels = smaller(quant_panels_for(kRows), 2);
    const std::uint32_t n = smaller(kBlockSuperblocks, superblocks(m) - at);
    for (std::uint32_t start = row; start < row_end; start += kRowBlock) {
        const std::uint32_t packed = smaller(kRowBlock, m.seq_len - start);
        float* const block_total = total + (start - row) * 2 * kLanes;
        for (std::uint32_t r = 0; r < packed; r += kRows)
            for (std::uint32_t p = 0; p < 2; p += kPanels) {
                QuantBlock<kPanels> b{.weight = {},
                                      .operand = packed_at(m, start, packed, at),
                                      .n_packed = packed,
                                      .row = r,
                                      .n_superblocks = n,
                                      .first = at == 0,
                                      .total = block_total + r * 2 * kLanes + p * kLanes,
                                      .total_stride = 2 * kLanes,
                                      .ahead_bytes = 0};
                for (std::uint32_t q = 0; q < kPanels; ++q) b.weight[q] = quants_at<kType>(m, panel + p + q, at);
                quant_block_product_of<kType, kRows>(smaller(kRows, packed - r), b);
            }
        if (at + n == superblocks(m))
            finish(m, {block_total, 2 * kLanes, start, packed, panel, smaller(2, m.panel_end - panel)});
    }
}

/// Many rows: as many as fit the cache stay there while the panels pass by two at a time.
template<Type kType>
void many_quant_rows(const Matmul& m) {
    alignas(64) float total[kMostRows * 2 * kLanes];
    const std::size_t fitting = QuantTiling::kOperandBytes / operand_bytes(kType, kRowBlock, m.n_cols);
    const std::uint32_t most = fitting < 1 ? 1 : smaller(static_cast<std::uint32_t>(fitting), kMostRows / kRowBlock);
    const std::uint32_t n_rows = most * kRowBlock;
    for (std::uint32_t row = 0; row < m.seq_len; row += n_rows)
        for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += 2)
            for (std::uint32_t at = 0; at < superblocks(m); at += kBlockSuperblocks)
                two_quant_panels<kType>(m, panel, at, row, smaller(m.seq_len, row + n_rows), total);
}

template<Type kType>
void matmul_q(const Matmul& m) noexcept {
    if (m.seq_len <= QuantTiling::kRows)
        few_quant_rows_of<kType, QuantTiling::kRows>(m);
    else
        many_quant_rows<kType>(m);
}

}  // namespace
}  // namespace fovea
