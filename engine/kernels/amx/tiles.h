// Products of many rows with broad groups by AMX: tiles of up to sixteen rows of 64 bytes, and products of two of them. One
// holds rows of the operand; another a panel's unit, which is a tile as it stands in the file; their integer sums are exact,
// so the bits are those of any other table.
//   tiles 0, 1 and 2   int32 sums [n_rows][16] of two panels; int8 [n_rows][64], a unit's columns of the operand
//   tiles 3, 4 and 5   the same for the operand's last block, which may have fewer rows
//   tiles 6 and 7      int8 [16][16][4], cells of the two panels
#pragma once
#include "../simd/matmul_q.h"
#include "../simd/quantize.h"

namespace fovea {
namespace {

/// What LDTILECFG reads (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, LDTILECFG).
struct TileConfig {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t n_rows[16] = {};

    /// For an operand's blocks of n rows and its last one of n_last, 0 where that is like the others. Loading it takes some
    /// 200 cycles by Intel's tables, so a product does it once.
    FOVEA_LANES TileConfig(std::uint32_t n, std::uint32_t n_last) {
        for (int tile = 0; tile < 8; ++tile) {
            n_rows[tile] = static_cast<std::uint8_t>(tile < 3 ? n : tile < 6 ? n_last : 16);
            row_bytes[tile] = n_rows[tile] ? 64 : 0;
        }
    }
    FOVEA_LANES void load() const { asm volatile("ldtilecfg %0" : : "m"(*this)); }  // GCC's intrinsic reads eight bytes
};
static_assert(sizeof(TileConfig) == 64);

inline constexpr std::size_t kUnitsOfGroup = kBroadGroup / kSuperblock;

// Instructions name tiles by numbers. GCC's intrinsics take only literals for them, and do not say that a load reads memory.
template<int kTile>
FOVEA_LANES void clear_tile() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template<int kTile>
FOVEA_LANES void load_tile(const std::byte* rows) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(rows), "r"(std::size_t{64}) : "memory");
}
template<int kTile>
FOVEA_LANES void store_tile(std::byte* rows) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(rows), "r"(std::size_t{64}) : "memory");
}
/// kSums += the products of signed bytes of kOperand's rows and kCells' columns.
template<int kSums, int kOperand, int kCells>
FOVEA_LANES void multiply_tiles() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kOperand), "i"(kCells));
}

/// Sums of the broad group of units [i, end) of a block, [2][kRows][16] int32, by way of the tiles from kFirst on. x is the group
/// in the operand of kRows rows, see TileKernels::pack.
template<int kFirst, std::uint32_t kRows, BroadGroups W>
FOVEA_LANES void multiply_group(const Block<W, 2>& b, std::size_t i, std::size_t end, const std::byte* x,
                                std::byte* sums) {
    using Unit = typename ColumnGroup<W>::Unit;
    clear_tile<kFirst>();
    clear_tile<kFirst + 1>();
    for (; i < end; ++i, x += kSuperblock * kRows) {
        load_tile<kFirst + 2>(x);
        load_tile<6>(Unit::at(b.weight[0], i).quants(0));
        multiply_tiles<kFirst, kFirst + 2, 6>();
        load_tile<7>(Unit::at(b.weight[1], i).quants(0));
        multiply_tiles<kFirst + 1, kFirst + 2, 7>();
    }
    store_tile<kFirst>(sums);
    store_tile<kFirst + 1>(sums + 64 * kRows);
}

/// A block's product with kRows rows, of the operand's `last` block or another. A group's integer sums become floats while
/// the next group's are on their way; the float sums stay in registers.
template<std::uint32_t kRows, BroadGroups W, std::uint32_t kPanels>
void tiles_block(const Block<W, kPanels>& b, bool last) {
    using Unit = typename ColumnGroup<W>::Unit;
    constexpr std::size_t kUnitOperand = kQuantGroupBytes * 2 * kRows;
    const auto* x = reinterpret_cast<const std::byte*>(b.operand);
    alignas(64) std::byte sums[2][kPanels * kRows * 64];  // of one group and the next
    F32x16 total[kRows][kPanels];
    FOVEA_UNROLL for (auto& row : total) { FOVEA_UNROLL for (F32x16& lanes : row) lanes = splat(0.0f); }
    const auto multiply = [&](std::uint32_t i) __attribute__((always_inline)) {
        const std::uint32_t end = smaller(i + kUnitsOfGroup, b.n_cols);
        for (std::uint32_t unit = i; unit < end; ++unit) {
            fetch_next<kRows>(b, unit);
            const std::byte* next = x + unit * kUnitOperand + b.next_rows;
            for (std::size_t line = 0; line < kUnitOperand; line += 64) __builtin_prefetch(next + line, 0, 3);
        }
        std::byte* const to = sums[i / kUnitsOfGroup % 2];
        const std::byte* const group = x + i * kUnitOperand;
        last ? multiply_group<3, kRows>(b, i, end, group, to) : multiply_group<0, kRows>(b, i, end, group, to);
    };
    multiply(0);
    for (std::uint32_t i = 0; i < b.n_cols; i += kUnitsOfGroup) {
        const std::uint32_t next = i + kUnitsOfGroup;
        if (next < b.n_cols) multiply(next);
        const std::byte* const x_scales =
            x + i * kUnitOperand + (smaller(next, b.n_cols) - i) * std::size_t{kSuperblock} * kRows;
        GroupFactors<kPanels> factors;
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) factors.scale[p] = Unit::at(b.weight[p], i).scale(0);
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            Dot dot[kPanels];
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
                dot[p] = bytes(sums[i / kUnitsOfGroup % 2] + (p * kRows + r) * 64);
            }
            finish_row<Unit::kType>(SumsInRegisters<kRows, kPanels>{total}, r, dot, factors, nullptr, x_scales);
        }
    }
    store_totals(total, b);
}

/// tiles_block for a number of rows that is only known now, 1 to kRows.
template<std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void tiles_block_of(std::uint32_t n_rows, const Block<W, kPanels>& b, bool last) {
    if (n_rows == kRows) return tiles_block<kRows>(b, last);
    if constexpr (kRows > 1) tiles_block_of<kRows - 1>(n_rows, b, last);
}

/// TileKernels::matmul. Blocks of rows are of one size, but for the last.
void matmul_by_tiles(const Matmul& m) noexcept {
    if constexpr (has(Part::gguf_types)) {
        const std::uint32_t n = row_block(m.seq_len);
        alignas(64) const TileConfig config(n, m.seq_len % n);
        config.load();
        gemm<Quants<Type::q8_128>>(
            m, [n](std::uint32_t n_rows, const auto& block)
                   __attribute__((always_inline)) { tiles_block_of<kRowBlock>(n_rows, block, n_rows != n); });
        asm volatile("tilerelease");  // else the tiles would be saved whenever threads take turns
    }
}

}  // namespace
}  // namespace fovea
