// Rows of activations as products by tiles want them: see TileKernels.
#pragma once
#include "engine/kernels/simd/quantize.h"

namespace fovea {
namespace {

/// Where in an operand a tile's quants and factors are, by its first row.
template<std::uint32_t kWidth>
struct TileOperand {
    std::size_t n_all, row_bytes, row_factors;
    TileOperand(std::uint32_t n_rows, std::uint32_t n_cols)
        : n_all(n_rows),
          row_bytes(static_cast<std::size_t>(round_up(n_cols, kSuperblock))),
          row_factors(kWidth == kBroadGroup ? static_cast<std::size_t>(round_up(n_cols, kWidth) / kWidth)
                                            : row_bytes / kGroup * kTileFactors) {}
    [[nodiscard]] std::size_t quants_at(std::size_t row) const { return row * row_bytes; }
    [[nodiscard]] std::size_t factors_at(std::size_t row) const {
        return n_all * row_bytes + row * row_factors * sizeof(float);
    }
};

/// Where a row's groups go in its tile of n rows.
template<std::uint32_t kWidth>
struct InTile {
    std::byte* quants;  // of the row's first unit
    float* factors;     // the row's first; the next ones are n further each
    std::size_t n, col = 0;

    template<std::size_t kVectors>
    FOVEA_LANES void take(const RowQuants<kVectors>& from) {
        *factors = from.scale;
        factors += n;
        FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; i += 2, col += kGroup) {
            const __m256i group =
                _mm256_set_m128i(_mm512_cvtepi32_epi8(from.quants(i + 1).v), _mm512_cvtepi32_epi8(from.quants(i).v));
            std::byte* const to = quants + col / kSuperblock * kSuperblock * n + col % kSuperblock;
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), group);
            if constexpr (kWidth == kGroup) put_minus_sums(group);
        }
    }

private:
    /// Puts −Σ of each half of a group.
    FOVEA_LANES void put_minus_sums(__m256i group) {
        __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), group);
        sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
        sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
        factors[0] = static_cast<float>(-_mm256_cvtsi256_si32(sums));
        factors[n] = static_cast<float>(-_mm256_extract_epi32(sums, 4));
        factors += 2 * n;
    }
};

/// TileKernels::pack and pack_broad.
template<std::uint32_t kWidth>
void pack_tiles(const float* x, std::size_t x_stride, const float* columns, PackedRows rows, std::uint32_t n_cols,
                std::byte* operand) noexcept {
    static_assert(kTileFactors == 1 + kGroup / kLanes);
    const RowTiles tiles(rows.n_all);
    const TileOperand<kWidth> to(rows.n_all, n_cols);
    pack_rows<kWidth>(
        x, x_stride, columns, rows.n_rows, n_cols, [&](std::size_t i) __attribute__((always_inline)) {
            const auto row = rows.first + static_cast<std::uint32_t>(i), tile = row / tiles.rows_each,
                       first = tiles.first(tile);
            return InTile<kWidth>{operand + to.quants_at(first) + (row - first) * kSuperblock,
                                  reinterpret_cast<float*>(operand + to.factors_at(first)) + (row - first),
                                  tiles.n_rows(tile)};
        });
}

}  // namespace
}  // namespace fovea
