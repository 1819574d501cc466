// Products of many rows with quantized weights by AMX: tiles of up to sixteen rows of 64 bytes, and products of two of them.
// Their integer sums are exact, so the bits are those of any other table.
//   tiles 0 to 3   int32 sums [rows][16] of two panels, of one group and of the next
//   tiles 4 and 5  int8 [rows][columns]: columns of the operand that share a scale, at most 64
//   tiles 6 and 7  int8 [columns / 4][16][4]: cells of the two panels
#pragma once
#include "engine/kernels/amx/pack.h"
#include "engine/kernels/amx/tile.h"
#include "engine/kernels/simd/matmul_q.h"

namespace fovea {
namespace {

/// How groups of kWidth columns that share a scale go through tiles. Broad ones take two tiles of 64.
template<std::uint32_t kWidth, bool kWithMinima>
struct TileGroups {
    static constexpr std::uint32_t kColumns = kWidth;
    static constexpr bool kBroad = kWidth > kSuperblock, kMinima = kWithMinima;
    static constexpr std::uint32_t kTiles = kBroad ? kWidth / kSuperblock : 1;  // of a group
    static constexpr std::uint32_t kOfTile = kBroad ? kSuperblock : kWidth;     // columns
    static constexpr std::uint32_t kOfBlock = kColumnBlock / kWidth;
    static constexpr std::uint32_t kOfUnit =
        kBroad ? 1 : kSuperblock / kWidth;                    // in a unit, or a broad group by itself
    static constexpr std::uint32_t kOfStep = kBroad ? 2 : 4;  // see TileStep
};

/// A block of columns of two panels, ready to be multiplied. Quants that are bytes in the file are read from there,
/// unless a tile's rows of them cross cache lines: such rows take twice as long to load.
template<class Groups>
struct TileWeights {
    const std::byte* cells[Groups::kOfBlock / Groups::kOfUnit][2];  // of each unit, or broad group
    alignas(64) float scales[Groups::kOfBlock][2][kLanes];
    alignas(64) float minima[Groups::kMinima ? Groups::kOfBlock : 1][2][kLanes];
    alignas(64) std::byte made[2][kColumnBlock * kLanes];
};

/// A cell with its zero taken off. VNNI's cells have theirs, and bit 7 of codebooks' is flipped.
template<class Unit>
FOVEA_LANES Bytes signed_quants(const Unit& unit, std::size_t group, std::size_t pair, std::size_t i) {
    const Bytes cell = unit.cell(group, pair, i);
    if constexpr (Unit::kFormat.codebook != nullptr) return flip(cell);
    return Unit::kFormat.zero ? less(cell, Unit::kFormat.zero) : cell;
}

template<Type kType, class Groups>
void make_ready(const Quants<kType>* const (&weight)[2], std::uint32_t n_units, TileWeights<Groups>& to) {
    using Unit = QuantUnit<kType>;
    constexpr std::uint32_t kUnits = Groups::kTiles;  // with scales of their own
    for (std::size_t p = 0; p < 2; ++p) {
        std::byte* made = to.made[p];
        for (std::uint32_t n = 0; n < n_units; n += kUnits, made += std::size_t{kUnits} * kSuperblock * kLanes) {
            const Unit unit = Unit::at(weight[p], n);
            FOVEA_UNROLL for (std::size_t i = 0; i < Groups::kOfUnit; ++i) {
                const std::size_t group = n / kUnits * Groups::kOfUnit + i;
                store(unit.scale(i), to.scales[group][p]);
                if constexpr (Groups::kMinima) store(unit.minimum(i), to.minima[group][p]);
            }
            const std::byte*& cells = to.cells[n / kUnits][p];
            cells = made;
            if constexpr (Unit::kFormat.bits < 8) {
                FOVEA_UNROLL for (std::size_t cell = 0; cell < kSuperblock / 4; ++cell)
                    store(signed_quants(unit, cell / 8, cell % 8 / 2, cell % 2), made + 64 * cell);
            } else if (reinterpret_cast<std::uintptr_t>(unit.quants(0)) % 64 == 0) {
                cells = unit.quants(0);
            } else {
                const std::size_t n_cells = std::size_t{smaller(kUnits, n_units - n)} * kSuperblock / 4;
                for (std::size_t cell = 0; cell < n_cells; ++cell)
                    store(bytes(unit.quants(0) + 64 * cell), made + 64 * cell);
            }
        }
    }
}

inline constexpr std::size_t kTotalsRow = 2 * kLanes;  // of two panels

/// Groups of a tile of rows. Their integer sums become floats while those of the next step are multiplied: until then they are
/// on their way to memory.
template<class Groups>
struct TileStep {
    static constexpr std::uint32_t kGroups = Groups::kOfStep;
    alignas(64) std::byte sums[kGroups][2 * kTileRows * 64];  // int32 [2][16 rows][16]
    alignas(64) float x_scales[kGroups][kTileRows];           // of the operand
    alignas(64) float minus[kGroups][Groups::kMinima ? kTileRows : 1];
    std::uint32_t n_groups = 0;        // kGroups or half of them
    const float (*scales)[2][kLanes];  // of the weights, by groups; and their minima
    const float (*minima)[2][kLanes];
    const float* from;  // the block's sums before these, [16 rows][2][16], each row so many floats on
    std::size_t from_row;
    float* to;  // where they go, [16 rows][2][16]
    bool adds;  // them to what is there
};

/// The scales of a step's sums, and the place of its next row.
template<class Groups>
struct StepFactors {
    F32x16 scale[Groups::kOfStep][2], minimum[Groups::kMinima ? Groups::kOfStep : 1][2];
    const float* from;
    float* to;

    FOVEA_LANES explicit StepFactors(const TileStep<Groups>& step) : from(step.from), to(step.to) {
        FOVEA_UNROLL for (std::uint32_t g = 0; g < Groups::kOfStep; ++g) {
            FOVEA_UNROLL for (std::uint32_t p = 0; p < 2; ++p) {
                scale[g][p] = load(step.scales[g][p]);
                if constexpr (Groups::kMinima) minimum[g][p] = load(step.minima[g][p]);
            }
        }
    }
};

/// As matmul_q.h's finish_row does it, one group after another.
template<std::uint32_t kGroups, class Groups>
FOVEA_LANES void finish_row(const TileStep<Groups>& step, StepFactors<Groups>& by, std::uint32_t row) {
    F32x16 sum[2] = {load(by.from), load(by.from + kLanes)};
    by.from += step.from_row;
    FOVEA_UNROLL for (std::uint32_t g = 0; g < kGroups; ++g) {
        const F32x16 x_scale = splat(step.x_scales[g][row]);
        FOVEA_UNROLL for (std::uint32_t p = 0; p < 2; ++p) {
            const F32x16 dot = to_float(bytes(step.sums[g] + (p * kTileRows + row) * 64));
            sum[p] = fma(dot, by.scale[g][p] * x_scale, sum[p]);
            if constexpr (Groups::kMinima) sum[p] = fma(step.minus[g][row], by.minimum[g][p], sum[p]);
        }
    }
    if (step.adds) FOVEA_UNROLL for (std::uint32_t p = 0; p < 2; ++p) sum[p] = load(by.to + p * kLanes) + sum[p];
    FOVEA_UNROLL for (std::uint32_t p = 0; p < 2; ++p, by.to += kLanes) store(sum[p], by.to);
}

/// A tile of the operand, from a unit of its columns on: see TileKernels. The last one may have fewer rows. It is
/// loaded as if it had all: the bytes read after it are still the operand's, since at least 24 bytes of each row and
/// unit follow the quants. Their products are not used.
template<class Groups>
struct TileRows {
    const std::byte* quants;
    const float* factors;
    std::size_t unit_bytes;
    std::uint32_t n_rows;

    TileRows(const Matmul& m, const RowTiles& tiles, std::uint32_t tile, std::uint32_t unit)
        : unit_bytes(std::size_t{tiles.n_rows(tile)} * kSuperblock), n_rows(tiles.n_rows(tile)) {
        const auto* operand = static_cast<const std::byte*>(m.operand);
        const TileOperand<Groups::kBroad ? kBroadGroup : kGroup> from(m.seq_len, m.n_cols);
        quants = operand + from.quants_at(tiles.first(tile)) + unit * unit_bytes;
        factors = reinterpret_cast<const float*>(operand + from.factors_at(tiles.first(tile))) +
                  (Groups::kBroad ? unit / 2 : unit * 2 * kTileFactors) * n_rows;
    }
    /// A group's scales, zeros for missing rows; with minima, −Σ·scale, too.
    FOVEA_LANES void scales(std::uint32_t group, float* to, float* minus) const {
        const float* const at =
            factors + (Groups::kBroad ? group : group * Groups::kColumns / kGroup * kTileFactors) * n_rows;
        const F32x16 scale = load_part(at, n_rows);
        store(scale, to);
        if constexpr (Groups::kMinima) {
            const F32x16 low = load_part(at + n_rows, n_rows), high = load_part(at + 2 * n_rows, n_rows);
            store((Groups::kColumns == kGroup ? low + high : group % 2 ? high : low) * scale, minus);
        }
    }
};

/// Products of tiles of rows with a block of columns of two panels, one tile after another.
template<class Groups>
class TileProduct {
public:
    TileProduct(const TileWeights<Groups>& weights, std::uint32_t n_units, bool is_first)
        : weights_(weights), n_units_(n_units), is_first_(is_first) {}

    /// Adds to the rows' totals [16 rows][2][16]. They are there after the next tile of rows, or when all is finished.
    FOVEA_LANES void multiply(const TileRows<Groups>& rows, float* total) {
        constexpr std::uint32_t kGroups = Groups::kOfStep, kTiles = kGroups * Groups::kTiles;
        const std::uint32_t n_groups = (n_units_ * Groups::kOfUnit + Groups::kTiles - 1) / Groups::kTiles;
        for (std::uint32_t group = 0; group < n_groups; group += kGroups, next_ = 1 - next_) {
            Step *at = steps_ + next_, *before_at = steps_ + (1 - next_);
            asm("" : "+r"(at), "+r"(before_at));  // else their addresses would be computed again for each row
            Step &step = *at, &before = *before_at;
            step.n_groups = smaller(kGroups, n_groups - group);
            for (std::uint32_t i = 0; i < step.n_groups; ++i) rows.scales(group + i, step.x_scales[i], step.minus[i]);
            step.scales = weights_.scales + group;
            step.minima = weights_.minima + (Groups::kMinima ? group : 0);
            const bool begins = group == 0, ends = group + kGroups >= n_groups;
            step.from = begins ? zeros_ : block_;
            step.from_row = begins ? 0 : kTotalsRow;
            step.to = ends ? total : block_;
            step.adds = ends && !is_first_;
            const std::uint32_t n_tiles =
                smaller(step.n_groups * Groups::kTiles, n_units_ * Groups::kOfUnit - group * Groups::kTiles);
            if (n_tiles < kTiles || before.n_groups < kGroups) {
                finish_and_multiply(step, before, rows, group, n_tiles);
                continue;
            }
            StepFactors<Groups> factors(before);
            std::uint32_t row = 0;
            const auto finish_some = [&]() __attribute__((always_inline)) {
                FOVEA_UNROLL for (std::uint32_t i = 0; i < kTileRows / (2 * kTiles); ++i, ++row)
                    finish_row<kGroups>(before, factors, row);
            };
            multiply_step(step, rows, group, kTiles, finish_some);
        }
    }
    void finish() { finish(steps_[1 - next_]); }

private:
    using Step = TileStep<Groups>;

    /// Products of a step's groups, from that one of the block on, in n_tiles of columns; between() after each product.
    template<class Between>
    FOVEA_LANES void multiply_step(Step& step, const TileRows<Groups>& rows, std::uint32_t group, std::uint32_t n_tiles,
                                   Between&& between) const {
        FOVEA_UNROLL for (std::uint32_t i = 0; i < Groups::kOfStep; i += 2) {
            const std::uint32_t begin = i * Groups::kTiles, middle = begin + Groups::kTiles;
            if (begin < n_tiles) multiply_group<0>(step.sums[i], rows, group + i, n_tiles - begin, between);
            if (middle < n_tiles) multiply_group<2>(step.sums[i + 1], rows, group + i + 1, n_tiles - middle, between);
        }
    }
    /// The same, not beside floats but after them, if one of two steps is short. As a function of its own it leaves the
    /// other loop the registers.
    [[gnu::noinline]] void finish_and_multiply(Step& step, Step& before, const TileRows<Groups>& rows,
                                               std::uint32_t group, std::uint32_t n_tiles) const {
        finish(before);
        multiply_step(step, rows, group, n_tiles, [] {});
    }
    /// By way of the sums' tiles from kSums on.
    template<int kSums, class Between>
    FOVEA_LANES void multiply_group(std::byte* sums, const TileRows<Groups>& rows, std::uint32_t group,
                                    std::uint32_t n_tiles, Between&& between) const {
        constexpr int kRows = kSums ? 5 : 4;
        const std::uint32_t unit = group / Groups::kOfUnit, column = group % Groups::kOfUnit * Groups::kColumns;
        const std::byte* x = rows.quants + unit * Groups::kTiles * rows.unit_bytes + column;
        const auto& cells = weights_.cells[unit];
        clear_tile<kSums>();
        clear_tile<kSums + 1>();
        FOVEA_UNROLL for (std::uint32_t i = 0; i < Groups::kTiles && i < n_tiles; ++i, x += rows.unit_bytes) {
            const std::size_t at = (column + i * kSuperblock) * kLanes;
            load_tile<kRows>(x);
            load_tile<6>(cells[0] + at);
            multiply_tiles<kSums, kRows, 6>();
            between();
            load_tile<7>(cells[1] + at);
            multiply_tiles<kSums + 1, kRows, 7>();
            between();
        }
        store_tile<kSums>(sums);
        store_tile<kSums + 1>(sums + kTileRows * 64);
    }
    static void finish(Step& step) {
        if (step.n_groups == 0) return;
        StepFactors<Groups> factors(step);
        for (std::uint32_t row = 0; row < kTileRows; ++row) {
            if (step.n_groups == Step::kGroups)
                finish_row<Step::kGroups>(step, factors, row);
            else
                finish_row<Step::kGroups / 2>(step, factors, row);
        }
        step.n_groups = 0;
    }

    const TileWeights<Groups>& weights_;
    const std::uint32_t n_units_;
    const bool is_first_;
    Step steps_[2];  // in turn
    alignas(64) float block_[kTileRows * kTotalsRow];
    alignas(64) float zeros_[kTotalsRow] = {};
    std::uint32_t next_ = 0;
};

// Tiles whose totals are kept on the stack while two panels pass over them, and bytes of their operand that stay in the
// second-level cache.
inline constexpr std::uint32_t kMostTiles = 24;
inline constexpr std::size_t kTilesBytes = 1 << 20;

/// Tiles that are multiplied with two panels before the next two, of rows of so many bytes.
[[nodiscard]] inline std::uint32_t tiles_together(const RowTiles& tiles, std::uint64_t row_bytes) {
    const std::uint64_t fitting = kTilesBytes / (row_bytes * tiles.rows_each);
    const std::uint32_t most = fitting < 1            ? 1
                               : fitting < kMostTiles ? static_cast<std::uint32_t>(fitting)
                                                      : kMostTiles;
    const std::uint32_t turns = (tiles.n + most - 1) / most;
    return (tiles.n + turns - 1) / turns;
}

template<Type kType>
void matmul_by_tiles(const Matmul& m) noexcept {
    using W = Quants<kType>;
    constexpr QuantFormat kFormat = format_of(kType);
    using Groups = TileGroups<kFormat.scale_columns, kFormat.minima>;
    constexpr std::uint32_t kBlock = kBlockUnits<W>;
    const RowTiles tiles(m.seq_len);
    const std::uint32_t n = n_units<W>(m), together = tiles_together(tiles, operand_bytes(kType, 1, m.n_cols));
    alignas(64) float totals[kMostTiles][kTileRows * kTotalsRow];
    TileWeights<Groups> weights;
    alignas(64) const TileConfig config(tiles.rows_each, Groups::kOfTile);
    config.load();
    for (std::uint32_t begin = 0; begin < tiles.n; begin += together) {
        const std::uint32_t end = smaller(tiles.n, begin + together);
        for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += 2) {
            const auto finish_tile = [&](std::uint32_t tile) {
                finish_quants(m, {totals[tile - begin], kTotalsRow, tiles.first(tile), tiles.n_rows(tile), panel,
                                  smaller(2, m.panel_end - panel)});
            };
            for (std::uint32_t unit = 0; unit < n; unit += kBlock) {
                const std::uint32_t units = smaller(kBlock, n - unit);
                const bool ends = unit + units == n;
                const W *weight[2], *next[2];
                point(weight, m, panel, unit);
                point(next, m, ends ? panel + 2 : panel, ends ? 0 : unit + units);
                make_ready(weight, units, weights);
                TileProduct<Groups> product(weights, units, unit == 0);
                const std::size_t ahead = smaller(kBlock, ends ? n : n - unit - units) * kUnitBytes<W>;
                for (std::uint32_t tile = begin; tile < end; ++tile) {
                    for (std::size_t line = ahead * (tile - begin) / (end - begin) / 64 * 64;
                         line < ahead * (tile - begin + 1) / (end - begin); line += 64)
                        for (const W* panel_ahead : next)
                            __builtin_prefetch(reinterpret_cast<const std::byte*>(panel_ahead) + line, 0, 2);
                    product.multiply({m, tiles, tile, unit}, totals[tile - begin]);
                }
                product.finish();
                for (std::uint32_t tile = begin; ends && tile < end; ++tile) finish_tile(tile);
            }
        }
    }
    asm volatile("tilerelease");  // else the tiles would be saved whenever threads take turns
}

}  // namespace
}  // namespace fovea
