// Products of many rows with broad groups by AMX: tiles of up to sixteen rows of 64 bytes, and products of two of them. One
// holds rows of the operand; another a panel's unit, which is a tile as it stands in the file; their integer sums are exact,
// so the bits are those of any other table.
//   tiles 0 and 1   int32 sums [n_rows][16] of two panels
//   tile 2          int8 [n_rows][64], a unit's columns of the operand
//   tiles 3 and 4   int8 [16][16][4], cells of the two panels
#pragma once
#include "../simd/matmul_q.h"
#include "../simd/quantize.h"

namespace fovea {
namespace {

/// What LDTILECFG reads (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, LDTILECFG).
struct TileConfig {
    std::uint8_t palette, start_row, reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t n_rows[16];
};
static_assert(sizeof(TileConfig) == 64);

/// That for operands of n_rows rows, [n_rows − 1].
struct TileConfigs {
    TileConfig of_rows[kRowBlock];
};
alignas(64) constexpr TileConfigs kTileConfigs = [] {
    TileConfigs configs{};
    for (std::uint32_t n = 1; n <= kRowBlock; ++n) {
        TileConfig& config = configs.of_rows[n - 1];
        config.palette = 1;
        for (int tile = 0; tile < 5; ++tile) {
            config.row_bytes[tile] = 64;
            config.n_rows[tile] = static_cast<std::uint8_t>(tile < 3 ? n : 16);
        }
    }
    return configs;
}();

inline constexpr std::size_t kUnitsOfGroup = kBroadGroup / kSuperblock;

/// Sums of the broad group of units [i, end) of a block, [kPanels][kRows][16] int32. x is the group in the operand of kRows
/// rows, see TileKernels::pack.
template<std::uint32_t kRows, BroadGroups W, std::uint32_t kPanels>
FOVEA_LANES void multiply_group(const Block<W, kPanels>& b, std::size_t i, std::size_t end, const std::byte* x,
                                std::byte* sums) {
    static_assert(kPanels == 2);
    using Unit = typename ColumnGroup<W>::Unit;
    _tile_zero(0);
    _tile_zero(1);
    for (; i < end; ++i, x += kSuperblock * kRows) {
        _tile_loadd(2, x, kSuperblock);
        _tile_loadd(3, Unit::at(b.weight[0], i).quants(0), 64);
        _tile_dpbssd(0, 2, 3);
        _tile_loadd(4, Unit::at(b.weight[1], i).quants(0), 64);
        _tile_dpbssd(1, 2, 4);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 64 * kRows, 64);
}

/// A block's product with kRows rows, as many as the tiles are configured for. A group's integer sums become floats while the
/// next group's are on their way; the float sums stay in registers.
template<std::uint32_t kRows, Fetch kFetch, BroadGroups W, std::uint32_t kPanels>
void microkernel(const Block<W, kPanels>& b) {
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
        multiply_group<kRows>(b, i, end, x + i * kUnitOperand, sums[i / kUnitsOfGroup % 2]);
    };
    multiply(0);
    for (std::uint32_t i = 0; i < b.n_cols; i += kUnitsOfGroup) {
        const std::uint32_t next = i + kUnitsOfGroup;
        if (next < b.n_cols) multiply(next);
        const std::byte* const x_scales =
            x + i * kUnitOperand + (smaller(next, b.n_cols) - i) * std::size_t{kSuperblock} * kRows;
        F32x16 scale[kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) scale[p] = Unit::at(b.weight[p], i).scale(0);
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            Dot dot[kPanels];
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
                dot[p] = bytes(sums[i / kUnitsOfGroup % 2] + (p * kRows + r) * 64);
            }
            finish_row<Unit::kType>(SumsInRegisters<kRows, kPanels>{total}, r, dot, scale, nullptr, x_scales);
        }
    }
    store_totals(total, b);
}

/// TileKernels::matmul. Blocks of rows are of one size, but for the last.
void matmul_by_tiles(const Matmul& m) noexcept {
    std::uint32_t configured = 0;
    gemm<Quants<Type::q8_128>>(m, [&](std::uint32_t n_rows, const auto& block) __attribute__((always_inline)) {
        if (n_rows != configured) _tile_loadconfig(&kTileConfigs.of_rows[n_rows - 1]);
        configured = n_rows;
        microkernel_of<kRowBlock>(n_rows, block);
    });
    _tile_release();  // else the tiles would be saved whenever threads take turns
}

}  // namespace
}  // namespace fovea
