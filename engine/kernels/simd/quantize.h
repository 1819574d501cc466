// Rows of activations become int8 in groups of 32 or 128, packed for a matmul with quantized weights.
#pragma once
#include "engine/kernels/lanes/math.h"
#include "engine/kernels/simd/quants.h"

namespace fovea {
namespace {

/// A row's columns that share a scale, sixteen side by side.
template<std::size_t kVectors>
struct RowQuants {
    F32x16 shifted[kVectors];  // quants + kRound
    U32x16 kept;               // of the lowest byte of each, which is the quant
    float scale;
    std::int32_t sum;  // of the quants

    FOVEA_LANES U32x16 quants(std::size_t i) const { return bits(shifted[i]) & kept; }
};

/// Without branches, so that groups overlap: if all is tiny, columns are multiplied by 0; what is not finite makes the
/// sum of quants NaN.
template<std::size_t kVectors>
FOVEA_LANES RowQuants<kVectors> quantize(const F32x16 (&x)[kVectors]) {
    F32x16 most = magnitude(x[0]);
    FOVEA_UNROLL for (std::size_t i = 1; i < kVectors; ++i) most = max(most, magnitude(x[i]));
    const float amax = fold_max(most);  // may lose a NaN
    const bool tiny = amax < kQuantMin;
    const F32x16 inverse = splat(tiny ? 0.0f : 127.0f / amax), round = splat(kRound);
    RowQuants<kVectors> row;
    F32x16 sums = splat(0.0f);
    FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; ++i) {
        row.shifted[i] = x[i] * inverse + round;
        sums = sums + (row.shifted[i] - round);
    }
    const float total = fold_sum(sums);  // of small integers: exact
    const bool finite = total == total;
    row.scale = !finite ? __builtin_bit_cast(float, 0x7fc00000u) : tiny ? 0.0f : amax / 127.0f;
    row.kept = splat_bits(finite ? 255 : 0);
    row.sum = finite ? static_cast<std::int32_t>(total) : 0;
    return row;
}

/// The same from memory that holds n of those columns; missing ones count as 0.
template<std::size_t kVectors>
FOVEA_LANES RowQuants<kVectors> quantize(const float* from, const float* columns, std::size_t n) {
    F32x16 x[kVectors];
    FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; ++i) {
        const std::size_t begin = i * kLanes, at = begin < n ? begin : n, some = n - at < kLanes ? n - at : kLanes;
        x[i] = some == kLanes ? load(from + at) : load_part(from + at, some);
        if (columns) x[i] = x[i] * (some == kLanes ? load(columns + at) : load_part(columns + at, some));
    }
    return quantize(x);
}

/// Where a row's groups go in a block of n_rows, one after another: see FloatKernels::pack_q8.
struct InGroups {
    std::byte* group;
    std::size_t row, n_rows;

    template<std::size_t kVectors>
    FOVEA_LANES void take(const RowQuants<kVectors>& from) {
        std::int32_t start8 = -128 * from.sum, start4 = -8 * from.sum;
        alignas(16) std::byte quants[kVectors * kLanes];
        FOVEA_UNROLL for (std::size_t i = 0; i < kVectors; ++i) store_bytes(from.quants(i), quants + i * kLanes);
        FOVEA_UNROLL for (std::size_t i = 0; i < kVectors * kLanes; i += kGroup, group += kQuantGroupBytes * n_rows) {
            FOVEA_UNROLL for (std::size_t cell = 0; cell < kGroup / 4; ++cell) {
                __builtin_memcpy(group + (cell * n_rows + row) * 4, quants + i + cell * 4, 4);
            }
            std::byte* const at = group + kGroup * n_rows + row * 4;
            __builtin_memcpy(at, &from.scale, 4);
            __builtin_memcpy(at + 4 * n_rows, &start8, 4);
            __builtin_memcpy(at + 8 * n_rows, &start4, 4);
            start8 = start4 = 0;
        }
    }
};

/// Gives the groups of a row to its place, in order: kWidth columns share a scale, or the 64 that are left. `columns` may be
/// null.
template<std::uint32_t kWidth, class Place>
FOVEA_LANES void pack_row(const float* x, const float* columns, std::uint32_t n_cols, Place place) {
    constexpr std::size_t kGroups = kWidth / kGroup, kVectors = kWidth / kLanes;
    const std::size_t n_groups = static_cast<std::size_t>(quant_groups(n_cols));
    std::size_t left = n_cols, i = 0;
    for (; left >= kWidth; i += kGroups, left -= kWidth, x += kWidth) {
        F32x16 whole[kVectors];
        FOVEA_UNROLL for (std::size_t v = 0; v < kVectors; ++v) whole[v] = load(x + v * kLanes);
        if (columns) {
            FOVEA_UNROLL for (std::size_t v = 0; v < kVectors; ++v) whole[v] = whole[v] * load(columns + v * kLanes);
            columns += kWidth;
        }
        place.take(quantize(whole));
    }
    for (; i < n_groups; i += kGroups, left = 0) {
        if (kGroups > 2 && n_groups - i < kGroups)
            place.take(quantize<kSuperblock / kLanes>(x, columns, left));
        else
            place.take(quantize<kVectors>(x, columns, left));
        x += left, columns += columns ? left : 0;
    }
}

/// place(row) is where the groups of each of n_rows rows go.
template<std::uint32_t kWidth, class PlaceOf>
FOVEA_LANES void pack_rows(const float* x, std::size_t x_stride, const float* columns, std::uint32_t n_rows,
                           std::uint32_t n_cols, PlaceOf&& place) {
    for (std::size_t row = 0; row < n_rows; ++row) {
        if (has(Part::columns) && columns)
            pack_row<kWidth>(x + row * x_stride, columns, n_cols, place(row));
        else
            pack_row<kWidth>(x + row * x_stride, nullptr, n_cols, place(row));
    }
}

/// pack_q8 and pack_broad.
template<std::uint32_t kWidth>
void pack_quants(const float* x, std::size_t x_stride, const float* columns, std::uint32_t n_rows, std::uint32_t n_cols,
                 std::byte* packed) noexcept {
    pack_rows<kWidth>(
        x, x_stride, columns, n_rows, n_cols, [&](std::size_t row) __attribute__((always_inline)) {
            return InGroups{packed, row, n_rows};
        });
}

}  // namespace
}  // namespace fovea
