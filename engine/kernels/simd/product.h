// The panel product: what matrices, scores and weighted sums of values have in common. A panel holds 16 outputs side by
// side; column after column, each row's operand is broadcast and multiplied into the sums of all panels at once. Sums
// stay in registers for a whole column block, so every chain is the specified one: in order, one fma per column.
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/lanes/lanes.h"

namespace fovea {
namespace {

#define FOVEA_UNROLL _Pragma("GCC unroll 16")

[[gnu::always_inline]] constexpr std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

/// Panels to take at once with so many rows: as many as leave every sum in a register. More than four only hide the latency of a
/// single row's sums.
template<class Shape = Tiling>
[[nodiscard]] constexpr std::uint32_t panels_for(std::uint32_t n_rows) {
    std::uint32_t n = n_rows == 1 ? Shape::kMostPanels : smaller(Shape::kMostPanels, 4);
    while (n > 1 && n * n_rows > Shape::kLiveSums) n /= 2;
    return n;
}

/// sum[row][p] += weight[p][col]·operand[col][row], for the columns in order.
///   weight[p]   [n_cols][16], weight_stride elements from one column to the next
///   operand     row r of column c is operand[r·kRowStride + c·operand_stride]
///   each_column(col)  is called once per column, to fetch the next ones
template<std::uint32_t kRowStride, std::uint32_t kRows, std::uint32_t kPanels, class W, class EachColumn>
FOVEA_LANES void accumulate(F32x16 (&sum)[kRows][kPanels], const W* const (&weight)[kPanels], std::size_t weight_stride,
                            const float* operand, std::size_t operand_stride, std::size_t n_cols,
                            EachColumn&& each_column) {
    for (std::size_t col = 0; col < n_cols; ++col) {
        each_column(col);
        F32x16 column[kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            column[p] = load(weight[p] + col * weight_stride);
            if (kRows > 1 && (kRows + 1) * kPanels <= Tiling::kLiveVectors) keep(column[p]);
        }
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            const float x = operand[col * operand_stride + r * kRowStride];
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) sum[r][p] = fma(x, column[p], sum[r][p]);
        }
    }
}

// How far ahead of its reading a stream of weights is fetched. Without, converting f16 fills the window in which the
// CPU looks for loads by itself, and a fifth of the bandwidth is lost; from 512 to 2048 bytes all do.
inline constexpr std::size_t kAheadBytes = 1024;

/// The cache that a product fetches the next bytes into: the first level for those its own streams are about to read,
/// the second for those that wait longer.
enum class Fetch { nothing = -1, second = 2, first = 3 };

// Whether this set runs on CPUs that fetch their own streams to the second level, see CpuFeatures.
#ifdef __AVX512F__
inline constexpr bool kFetchesFar = true;
#else
inline constexpr bool kFetchesFar = false;
#endif

/// Fetches the line of a product's own stream at p, into the first-level cache or, if that is asked for, the second.
FOVEA_LANES void fetch_stream(const std::byte* p, bool second_level) {
    if constexpr (kFetchesFar)
        asm volatile("" : "+r"(second_level));  // else the whole loop around it would be there twice
    else
        second_level = false;
    second_level ? __builtin_prefetch(p, 0, 2) : __builtin_prefetch(p, 0, 3);
}

/// A block of at most kColumnBlock columns of kRows rows times kPanels panels.
template<class W, std::uint32_t kPanels>
struct Block {
    const W* weight[kPanels];  // this block's first column of each panel
    const float* operand;      // [n_cols][operand_stride]; rows are adjacent
    std::size_t operand_stride;
    std::uint32_t n_cols;
    bool first;    // of its dot product: total = sum; otherwise total = total + sum
    float* total;  // [row][total_stride], 16 per panel
    std::size_t total_stride;
    const std::byte* ahead[kPanels];    // what to fetch meanwhile, see Fetch,
    std::size_t ahead_step;             // so many bytes per column; of quants
    std::uint32_t ahead_cols = ~0u;     // from this column on
    std::size_t ahead_jump = 0;         // so many bytes farther, where the next panels start
    bool second_level = false;          // see fetch_stream
    std::size_t next_rows = 0;          // bytes from the operand to that of the rows that come next
    float* out = nullptr;               // where the first row's result goes in the end; null: nobody knows
    std::size_t out_stride = 0;         // from one row to the next
    std::uint32_t cols_left = ~0u;      // of the dot product, this block's among them
    const std::byte* starts = nullptr;  // of quants, see make_starts; null: nobody made them
};

// Steps over which lines of the results are fetched: a burst of distant lines would hold up all other reads.
inline constexpr std::uint32_t kOutSteps = 8;

/// Fetches unit i's share of the next bytes: other panels' into the second-level cache, and the results' lines, to be
/// written: a store that waits for its line holds up the stores of sums behind it.
template<std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void fetch_next(const Block<W, kPanels>& b, std::uint32_t i) {
    for (std::uint32_t p = 0; p < kPanels; ++p)
        for (std::size_t line = 0; line < b.ahead_step; line += 64)
            __builtin_prefetch(b.ahead[p] + i * b.ahead_step + line, 0, 2);
    const std::uint32_t left = b.cols_left - i;
    if (b.out == nullptr || left > kOutSteps) return;
    const std::uint32_t begin = b.first && i == 0 ? 0 : kRows * (kOutSteps - left) / kOutSteps;
    for (std::uint32_t r = begin; r < kRows * (kOutSteps - left + 1) / kOutSteps; ++r)
        for (std::uint32_t p = 0; p < kPanels; ++p) __builtin_prefetch(b.out + r * b.out_stride + p * kLanes, 1, 3);
}

/// Rows of an operand that are summed together, if several such tiles go over a block's weights: the first row's first
/// column, and the rows of the operand's block.
struct RowTile {
    const float* operand;
    std::uint32_t packed, n_rows;
};

/// A block's sums are stored, or added to the totals so far.
template<std::uint32_t kRows, std::uint32_t kPanels, class W>
FOVEA_LANES void store_totals(const F32x16 (&sum)[kRows][kPanels], const Block<W, kPanels>& b) {
    float* const total = b.total;  // copies: the stores below might else change b for all the compiler knows
    const std::size_t stride = b.total_stride;
    const bool first = b.first;
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            float* at = total + r * stride + p * kLanes;
            store(first ? sum[r][p] : load(at) + sum[r][p], at);
        }
    }
}

/// The same for sums in memory, [kRows][kPanels·16].
template<std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void store_totals(const float* sum, const Block<W, kPanels>& b) {
    F32x16 block[kRows][kPanels];
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) block[r][p] = load(sum + (r * kPanels + p) * kLanes);
    }
    store_totals(block, b);
}

/// The same for tiles' sums in memory, [row][kPanels·16].
template<class W, std::uint32_t kPanels>
FOVEA_LANES void store_totals(const float* sum, const RowTile* tiles, std::uint32_t n_tiles,
                              const Block<W, kPanels>& b) {
    float* total = b.total;
    for (std::uint32_t t = 0; t < n_tiles; ++t)
        for (std::uint32_t r = 0; r < tiles[t].n_rows; ++r, total += b.total_stride, sum += kPanels * kLanes)
            for (std::uint32_t i = 0; i < kPanels * kLanes; i += kLanes) {
                const F32x16 x = load(sum + i);
                store(b.first ? x : load(total + i) + x, total + i);
            }
}

/// Calls run<n>(), n being a number of rows from kLeast to kMost that is only known now.
template<std::uint32_t kLeast, std::uint32_t kMost, class Run>
FOVEA_LANES void with_rows(std::uint32_t n, Run&& run) {
    if constexpr (kLeast < kMost)
        if (n < kMost) return with_rows<kLeast, kMost - 1>(n, run);
    run.template operator()<kMost>();
}

template<std::uint32_t kRows, Fetch kFetch, class W, std::uint32_t kPanels>
void microkernel(const Block<W, kPanels>& b) {
    F32x16 sum[kRows][kPanels];
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) sum[r][p] = splat(0.0f);
    }
    const auto fetch = [&](std::size_t col) {
        if constexpr (kFetch != Fetch::nothing) {
            const std::size_t at =
                col * b.ahead_step + (kFetch == Fetch::first && col >= b.ahead_cols ? b.ahead_jump : 0);
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
                if constexpr (kFetch == Fetch::first)
                    fetch_stream(b.ahead[p] + at, b.second_level);
                else
                    __builtin_prefetch(b.ahead[p] + at, 0, static_cast<int>(kFetch));
            }
        }
    };
    accumulate<1>(sum, b.weight, kLanes, b.operand, b.operand_stride, b.n_cols, fetch);
    store_totals(sum, b);
}

// Columns after which the next tile of rows goes over the same weights: few enough for the first-level cache to hold them,
// enough for the sums' way to memory and back not to matter.
inline constexpr std::uint32_t kTileColumns = 64;

/// Goes on with a tile's sums, [kRows][kPanels·16], over the columns [begin, end) of a block; a row's operand of the
/// block's first column is at `operand`. Fetches fetch_step bytes per column from `ahead` on.
template<std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void tile_columns(const Block<W, kPanels>& b, std::uint32_t begin, std::uint32_t end, const float* operand,
                              std::uint32_t packed, std::size_t ahead, std::size_t fetch_step, float* at) {
    F32x16 sum[kRows][kPanels];
    const W* weight[kPanels];
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) weight[p] = b.weight[p] + begin * kLanes;
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            sum[r][p] = begin == 0 ? splat(0.0f) : load(at + (r * kPanels + p) * kLanes);
        }
    }
    const auto fetch = [&](std::size_t col) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            __builtin_prefetch(b.ahead[p] + ahead + col * fetch_step, 0, 3);
        }
    };
    accumulate<1>(sum, weight, kLanes, operand + std::size_t{begin} * packed, packed, end - begin, fetch);
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) store(sum[r][p], at + (r * kPanels + p) * kLanes);
    }
}

/// A block's products with several tiles of kLeast rows or more, whose operands at the block's first column are `offset`
/// elements a row on. Each fetches its share of the next bytes.
template<std::uint32_t kLeast, class W, std::uint32_t kPanels>
void tiles_product(const Block<W, kPanels>& b, const RowTile* tiles, std::uint32_t n_tiles, std::size_t offset) {
    alignas(64) float sums[kFewRows * kPanels * kLanes];
    const std::size_t step = (b.ahead_step + n_tiles - 1) / n_tiles;
    for (std::uint32_t begin = 0; begin < b.n_cols; begin += kTileColumns) {
        const std::uint32_t end = smaller(b.n_cols, begin + kTileColumns);
        std::size_t ahead = begin * b.ahead_step + (begin < b.ahead_cols ? 0 : b.ahead_jump);
        float* sum = sums;
        for (std::uint32_t t = 0; t < n_tiles; ++t, ahead += (end - begin) * step) {
            const RowTile& tile = tiles[t];
            const float* operand = tile.operand + offset * tile.packed;
            const auto go_on = [&]<std::uint32_t kRows>() __attribute__((always_inline)) {
                tile_columns<kRows>(b, begin, end, operand, tile.packed, ahead, step, sum);
            };
            with_rows<kLeast, Tiling::kRows>(tile.n_rows, go_on);
            sum += tile.n_rows * kPanels * kLanes;
        }
    }
    store_totals(sums, tiles, n_tiles, b);
}

}  // namespace
}  // namespace fovea
