// Rows of activations become int8 in groups of 32 or 128, packed for a matmul with quantized weights.
#pragma once
#include "../lanes/math.h"
#include "quants.h"

namespace fovea {
namespace {

/// Quantizes row `row` of packed groups from columns that share a scale, sixteen at a time. Without branches, so that groups
/// overlap: where all is tiny, columns are multiplied by 0; what is not finite makes the sum of quants NaN. kTiles: in the
/// order of TileKernels::pack.
template<bool kTiles, std::size_t kVectors>
FOVEA_LANES void quantize(const F32x16 (&x)[kVectors], std::size_t row, std::size_t n_rows, std::byte* group) {
    F32x16 most = magnitude(x[0]);
    FOVEA_UNROLL for (std::size_t i = 1; i < kVectors; ++i) most = max(most, magnitude(x[i]));
    const float amax = fold_max(most);  // may lose a NaN
    const bool tiny = amax < kQuantMin;
    const F32x16 inverse = splat(tiny ? 0.0f : 127.0f / amax), round = splat(kRound);
    F32x16 t[kVectors], sums = splat(0.0f);
    FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; ++i) {
        t[i] = x[i] * inverse + round;
        sums = sums + (t[i] - round);
    }
    const float total = fold_sum(sums);  // of small integers: exact
    const bool finite = total == total;
    const float scale = !finite ? __builtin_bit_cast(float, 0x7fc00000u) : tiny ? 0.0f : amax / 127.0f;
    const U32x16 kept = splat_bits(finite ? 255 : 0);
    const std::int32_t sum = finite ? static_cast<std::int32_t>(total) : 0;
    std::int32_t start8 = -128 * sum, start4 = -8 * sum;
    if constexpr (kTiles) {
        FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; ++i)
            store_bytes(bits(t[i]) & kept, group + (i / 4 * n_rows + row) * kSuperblock + i % 4 * kLanes);
        __builtin_memcpy(group + kVectors * kLanes * n_rows + row * 4, &scale, 4);
        return;
    }
    alignas(16) std::byte quants[kVectors * kLanes];
    FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; ++i) store_bytes(bits(t[i]) & kept, quants + i * kLanes);
    FOVEA_UNROLL for (std::size_t i = 0; i < kVectors * kLanes; i += kGroup, group += kQuantGroupBytes * n_rows) {
        FOVEA_UNROLL for (std::size_t cell = 0; cell < kGroup / 4; ++cell) {
            __builtin_memcpy(group + (cell * n_rows + row) * 4, quants + i + cell * 4, 4);
        }
        std::byte* const at = group + kGroup * n_rows + row * 4;
        __builtin_memcpy(at, &scale, 4);
        __builtin_memcpy(at + 4 * n_rows, &start8, 4);
        __builtin_memcpy(at + 8 * n_rows, &start4, 4);
        start8 = start4 = 0;
    }
}

/// The same from memory, where n of those columns are; what is missing counts as 0.
template<bool kTiles, std::size_t kVectors>
FOVEA_LANES void quantize(const float* from, const float* columns, std::size_t n, std::size_t row, std::size_t n_rows,
                          std::byte* group) {
    F32x16 x[kVectors];
    FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; ++i) {
        const std::size_t begin = i * kLanes, at = begin < n ? begin : n, some = n - at < kLanes ? n - at : kLanes;
        x[i] = some == kLanes ? load(from + at) : load_part(from + at, some);
        if (columns) x[i] = x[i] * (some == kLanes ? load(columns + at) : load_part(columns + at, some));
    }
    quantize<kTiles>(x, row, n_rows, group);
}

/// pack_q8, pack_broad and TileKernels::pack: kWidth columns share a scale, or the 64 that are left. `columns` may be null.
template<std::uint32_t kWidth, bool kTiles>
FOVEA_LANES void pack_rows(const float* x, std::size_t x_stride, const float* columns, std::uint32_t n_rows,
                           std::uint32_t n_cols, std::byte* packed) {
    constexpr std::size_t kGroups = kWidth / kGroup, kVectors = kWidth / kLanes;
    const std::size_t n_groups = static_cast<std::size_t>(quant_groups(n_cols)),
                      group_bytes = kQuantGroupBytes * n_rows;
    for (std::size_t row = 0; row < n_rows; ++row) {
        const float *from = x + row * x_stride, *by = columns;
        std::size_t left = n_cols, i = 0;
        std::byte* group = packed;
        for (; left >= kWidth; i += kGroups, left -= kWidth, from += kWidth, group += kGroups * group_bytes) {
            F32x16 whole[kVectors];
            FOVEA_UNROLL for (std::size_t v = 0; v < kVectors; ++v) whole[v] = load(from + v * kLanes);
            if (columns) {
                FOVEA_UNROLL for (std::size_t v = 0; v < kVectors; ++v) whole[v] = whole[v] * load(by + v * kLanes);
                by += kWidth;
            }
            quantize<kTiles>(whole, row, n_rows, group);
        }
        for (; i < n_groups; i += kGroups, left = 0, group += kGroups * group_bytes) {
            if (kGroups > 2 && n_groups - i < kGroups)
                quantize<kTiles, kSuperblock / kLanes>(from, by, left, row, n_rows, group);
            else
                quantize<kTiles, kVectors>(from, by, left, row, n_rows, group);
            from += left, by += columns ? left : 0;
        }
    }
}

template<std::uint32_t kWidth, bool kTiles = false>
void pack_quants(const float* x, std::size_t x_stride, const float* columns, std::uint32_t n_rows, std::uint32_t n_cols,
                 std::byte* packed) noexcept {
    if (has(Part::columns) && columns)
        pack_rows<kWidth, kTiles>(x, x_stride, columns, n_rows, n_cols, packed);
    else
        pack_rows<kWidth, kTiles>(x, x_stride, nullptr, n_rows, n_cols, packed);
}

}  // namespace
}  // namespace fovea
