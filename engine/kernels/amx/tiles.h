// Products of many rows with quantized weights by AMX: tiles of up to sixteen rows of 64 bytes, and products of two of them.
// Their integer sums are exact, so the bits are those of any other table.
//   tiles 0 to 3   int32 sums [rows][16] of two panels, of one group and of the next
//   tiles 4 and 5  int8 [rows][columns]: columns of the operand that share a scale, at most 64
//   tiles 6 and 7  int8 [columns / 4][16][4]: cells of the two panels
#pragma once
#include "../simd/matmul_q.h"
#include "pack.h"
#include "tile.h"

namespace fovea {
namespace {

/// How groups of kWidth columns that share a scale go through tiles. Broad ones take two tiles of 64.
template<std::uint32_t kWidth, bool kWithMinima>
struct TileGroups {
    static constexpr std::uint32_t kColumns = kWidth;
    static constexpr bool kBroad = kWidth > kSuperblock, kMinima = kWithMinima;
    static constexpr std::uint32_t kOfTile = kBroad ? kSuperblock : kWidth;  // columns
    static constexpr std::uint32_t kOfBlock = kColumnBlock / kWidth;
    static constexpr std::uint32_t kOfUnit = kBroad ? 1 : kSuperblock / kWidth;
};

/// A block of columns of two panels, ready to be multiplied. Quants that are bytes in the file stay there.
template<class Groups>
struct TileWeights {
    const std::byte* quants[2];  // of the first unit
    std::size_t stride;          // from one unit's to the next; of broad groups from one's to the next
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
    constexpr QuantFormat kFormat = format_of(kType);
    constexpr std::uint32_t kUnits = Groups::kBroad ? kBroadGroup / kSuperblock : 1;  // with scales of their own
    constexpr std::uint32_t kScales = Groups::kOfUnit;
    to.stride = kFormat.bits < 8 ? kSuperblock * kLanes
                                 : static_cast<std::size_t>(kFormat.unit_at(kUnits) - kFormat.unit_at(0));
    for (std::size_t p = 0; p < 2; ++p) {
        to.quants[p] = kFormat.bits < 8 ? to.made[p] : Unit::at(weight[p], 0).quants(0);
        std::byte* made = to.made[p];
        for (std::size_t n = 0; n < n_units; n += kUnits) {
            const Unit unit = Unit::at(weight[p], n);
            FOVEA_UNROLL for (std::size_t i = 0; i < kScales; ++i) {
                const std::size_t group = n / kUnits * kScales + i;
                store(unit.scale(i), to.scales[group][p]);
                if constexpr (Groups::kMinima) store(unit.minimum(i), to.minima[group][p]);
            }
            if constexpr (kFormat.bits < 8)
                FOVEA_UNROLL for (std::size_t cell = 0; cell < kSuperblock / 4; ++cell, made += 64)
                    store(signed_quants(unit, cell / 8, cell % 8 / 2, cell % 2), made);
        }
    }
}

inline constexpr std::size_t kTotalsRow = 2 * kLanes;  // of two panels

/// A group whose integer sums wait to be made floats.
struct TileSums {
    const float* x_scales;         // of the operand [16 rows]
    const float (*scale)[kLanes];  // of the weights [2], and their minima
    const float (*minimum)[kLanes];
    bool begins;   // a block
    float* total;  // of the tile, where the block ends; else null
};

/// As matmul_q.h's finish_row does it. block: the block's sums so far [16 rows][2][16]; kBegins: none.
template<bool kMinima, bool kBegins>
FOVEA_LANES void finish_row(const std::byte* sums, float x_scale, float minus, const F32x16 (&scale)[2],
                            const F32x16 (&minimum)[2], float* block) {
    FOVEA_UNROLL for (std::uint32_t p = 0; p < 2; ++p, block += kLanes) {
        const F32x16 dot = to_float(bytes(sums + p * kTileRows * 64));
        F32x16 sum = fma(dot, scale[p] * splat(x_scale), kBegins ? splat(0.0f) : load(block));
        if constexpr (kMinima) sum = fma(minus, minimum[p], sum);
        store(sum, block);
    }
}

/// Products of a group with two panels, by way of the sums' tiles from kSums on; after each one between(). x: the operand's
/// rows, those of the next unit x_stride on; cells of the first and second panel; n_tiles of 64 columns.
template<int kSums, bool kBroad, class Between>
FOVEA_LANES void multiply_group(const std::byte* x, std::size_t x_stride, const std::byte* first,
                                const std::byte* second, std::uint32_t n_tiles, std::byte* sums, Between&& between) {
    constexpr int kRows = kSums ? 5 : 4;
    clear_tile<kSums>();
    clear_tile<kSums + 1>();
    FOVEA_UNROLL for (std::uint32_t i = 0; i < (kBroad ? 2 : 1); ++i) {
        const bool is_there = !kBroad || i < n_tiles;
        if (is_there) {
            load_tile<kRows>(x + i * x_stride);
            load_tile<6>(first + i * 1024);
            multiply_tiles<kSums, kRows, 6>();
        }
        between();
        if (is_there) {
            load_tile<7>(second + i * 1024);
            multiply_tiles<kSums + 1, kRows, 7>();
        }
        between();
    }
    store_tile<kSums>(sums);
    store_tile<kSums + 1>(sums + kTileRows * 64);
}

/// A tile of the operand, from a unit of its columns on: see TileKernels. The last one may have fewer rows. It is loaded as if
/// it had all: what is read after it is the operand, too, for at least 24 bytes of each row and unit follow the quants. What
/// becomes of it is not used.
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
    /// A group's scales: where they are, or of fewer rows than sixteen copied to `to`, with zeros for the rest. With minima
    /// −Σ·scale goes to `minus`.
    FOVEA_LANES const float* scales(std::uint32_t group, float* to, float* minus) const {
        const float* const at =
            factors + (Groups::kBroad ? group : group * Groups::kColumns / kGroup * kTileFactors) * n_rows;
        const bool is_whole = n_rows == kTileRows;
        if (is_whole && !Groups::kMinima) return at;
        const F32x16 scale = load_part(at, n_rows);
        if (!is_whole) store(scale, to);
        if constexpr (Groups::kMinima) {
            const F32x16 low = load_part(at + n_rows, n_rows), high = load_part(at + 2 * n_rows, n_rows);
            store((Groups::kColumns == kGroup ? low + high : group % 2 ? high : low) * scale, minus);
        }
        return is_whole ? at : to;
    }
};

/// Products of tiles of rows with a block of columns of two panels, one tile after another. A group's sums become floats while
/// tiles are busy with the second group after it: until then they are on their way to memory. The places of two successive
/// groups differ in the lowest twelve bits of their addresses, by which a CPU first tells whether a load waits for a store.
template<class Groups>
class TileProduct {
public:
    TileProduct(const TileWeights<Groups>& weights, std::uint32_t n_units, bool is_first)
        : weights_(weights), n_units_(n_units), is_first_(is_first) {}

    /// Adds to the rows' totals [16 rows][2][16]. They are there after the next two tiles of rows, or when all is finished.
    [[gnu::noinline]] void multiply(const TileRows<Groups>& rows, float* total) {
        const std::byte *x = rows.quants, *first = weights_.quants[0], *second = weights_.quants[1];
        const std::size_t x_stride = rows.unit_bytes, stride = weights_.stride;
        const std::uint32_t n_groups = Groups::kBroad ? (n_units_ + 1) / 2 : n_units_ * Groups::kOfUnit;
        for (std::uint32_t group = 0; group < n_groups; group += Groups::kOfUnit) {
            FOVEA_UNROLL for (std::uint32_t i = 0; i < Groups::kOfUnit; ++i) {
                TileSums& sums = waiting_[next_];
                sums.x_scales = rows.scales(group + i, x_scales_[next_], minus_[next_]);
                sums.scale = weights_.scales[group + i];
                sums.minimum = weights_.minima[Groups::kMinima ? group + i : 0];
                sums.begins = group + i == 0;
                sums.total = group + i + 1 == n_groups ? total : nullptr;
                constexpr std::size_t kCells = std::size_t{Groups::kColumns} * kLanes;
                step(x + i * Groups::kColumns, x_stride, first + i * kCells, second + i * kCells,
                     Groups::kBroad ? n_units_ - 2 * group : 1);
            }
            x += (Groups::kBroad ? 2 : 1) * x_stride;
            first += stride;
            second += stride;
        }
    }
    void finish() {
        for (; n_waiting_; --n_waiting_) {
            const std::uint32_t i = (next_ + kPlaces - n_waiting_) % kPlaces;
            waiting_[i].begins ? finish_rows<true>(i, 0, kTileRows) : finish_rows<false>(i, 0, kTileRows);
            end(waiting_[i]);
        }
    }

private:
    static constexpr std::uint32_t kPlaces = 4;

    /// A group's products, and what waits longest made floats.
    FOVEA_LANES void step(const std::byte* x, std::size_t x_stride, const std::byte* first, const std::byte* second,
                          std::uint32_t n_tiles) {
        if (n_waiting_ < 2) {
            multiply_group<0, Groups::kBroad>(x, x_stride, first, second, n_tiles, sums_[next_], [] {});
            ++n_waiting_;
        } else {
            const std::uint32_t before = (next_ + kPlaces - 2) % kPlaces;
            waiting_[before].begins ? step<true>(before, x, x_stride, first, second, n_tiles)
                                    : step<false>(before, x, x_stride, first, second, n_tiles);
            end(waiting_[before]);
        }
        next_ = (next_ + 1) % kPlaces;
    }
    template<bool kBegins>
    FOVEA_LANES void step(std::uint32_t before, const std::byte* x, std::size_t x_stride, const std::byte* first,
                          const std::byte* second, std::uint32_t n_tiles) {
        constexpr std::uint32_t kRowsEach = kTileRows / (Groups::kBroad ? 4 : 2);
        std::uint32_t row = 0;
        const auto between = [&]() __attribute__((always_inline)) {
            finish_rows<kBegins>(before, row, row + kRowsEach);
            row += kRowsEach;
            asm volatile("" : : : "memory");  // else a compiler might move all of it behind the tiles
        };
        if (next_ % 2)
            multiply_group<2, Groups::kBroad>(x, x_stride, first, second, n_tiles, sums_[next_], between);
        else
            multiply_group<0, Groups::kBroad>(x, x_stride, first, second, n_tiles, sums_[next_], between);
    }
    template<bool kBegins>
    FOVEA_LANES void finish_rows(std::uint32_t i, std::uint32_t row, std::uint32_t row_end) {
        const TileSums& sums = waiting_[i];
        F32x16 scale[2], minimum[2]{};
        FOVEA_UNROLL for (std::uint32_t p = 0; p < 2; ++p) {
            scale[p] = load(sums.scale[p]);
            if constexpr (Groups::kMinima) minimum[p] = load(sums.minimum[p]);
        }
        const float *const x_scales = sums.x_scales, *const minus = minus_[i];
        FOVEA_UNROLL for (; row < row_end; ++row) {
            finish_row<Groups::kMinima, kBegins>(sums_[i] + row * 64, x_scales[row], Groups::kMinima ? minus[row] : 0,
                                                 scale, minimum, block_ + row * kTotalsRow);
            asm volatile("" : : : "memory");  // else rows would be mixed, which takes longer
        }
    }
    FOVEA_LANES void end(const TileSums& sums) const {
        if (!sums.total) return;
        for (std::size_t i = 0; i < kTileRows * kTotalsRow; i += kLanes) {
            const F32x16 sum = load(block_ + i);
            store(is_first_ ? sum : load(sums.total + i) + sum, sums.total + i);
        }
    }

    const TileWeights<Groups>& weights_;
    const std::uint32_t n_units_;
    const bool is_first_;
    alignas(64) std::byte sums_[kPlaces][2 * kTileRows * 64];  // int32 [2][16 rows][16], in turn
    alignas(64) float x_scales_[kPlaces][kTileRows], minus_[kPlaces][Groups::kMinima ? kTileRows : 1];
    alignas(64) float block_[kTileRows * kTotalsRow];
    TileSums waiting_[kPlaces];
    std::uint32_t next_ = 0, n_waiting_ = 0;
};

// Tiles whose totals are kept on the stack while two panels pass over them, and bytes of their operand that stay in the
// second-level cache.
inline constexpr std::uint32_t kMostTiles = 12;
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
                finish(m, {totals[tile - begin], kTotalsRow, tiles.first(tile), tiles.n_rows(tile), panel,
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
                    if (ends && tile >= begin + 2) finish_tile(tile - 2);
                }
                product.finish();
                for (std::uint32_t tile = end < begin + 2 ? begin : end - 2; ends && tile < end; ++tile)
                    finish_tile(tile);
            }
        }
    }
    asm volatile("tilerelease");  // else the tiles would be saved whenever threads take turns
}

}  // namespace
}  // namespace fovea
