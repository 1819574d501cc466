// Rows of activations become int8 in groups of 32, packed for a matmul with quantized weights.
#pragma once
#include "math.h"
#include "quants.h"

namespace fovea {
namespace {

/// Quantizes row `row` of a packed group from its first and second sixteen columns. Without branches, so that groups
/// overlap: where all is tiny, columns are multiplied by 0; what is not finite makes the sum of quants NaN.
FOVEA_LANES void quantize(F32x16 x0, F32x16 x1, std::size_t row, std::size_t n_rows, std::byte* group) {
    const float amax = fold_max(max(magnitude(x0), magnitude(x1)));  // may lose a NaN
    const bool tiny = amax < kQuantMin;
    const F32x16 inverse = splat(tiny ? 0.0f : 127.0f / amax), round = splat(kRound);
    const F32x16 t0 = x0 * inverse + round, t1 = x1 * inverse + round;
    const float total = fold_sum((t0 - round) + (t1 - round));  // of small integers: exact
    const bool finite = total == total;
    const float scale = !finite ? __builtin_bit_cast(float, 0x7fc00000u) : tiny ? 0.0f : amax / 127.0f;
    const U32x16 kept = splat_bits(finite ? 255 : 0);
    const std::int32_t sum = finite ? static_cast<std::int32_t>(total) : 0;
    const std::int32_t start8 = -128 * sum, start4 = -8 * sum;
    alignas(16) std::byte quants[kGroup];
    store_bytes(bits(t0) & kept, quants);
    store_bytes(bits(t1) & kept, quants + kLanes);
    FOVEA_UNROLL for (std::size_t cell = 0; cell < kGroup / 4; ++cell) {
        __builtin_memcpy(group + (cell * n_rows + row) * 4, quants + cell * 4, 4);
    }
    std::byte* const at = group + kGroup * n_rows + row * 4;
    __builtin_memcpy(at, &scale, 4);
    __builtin_memcpy(at + 4 * n_rows, &start8, 4);
    __builtin_memcpy(at + 8 * n_rows, &start4, 4);
}

void pack_q8(const float* x, std::size_t x_stride, std::uint32_t n_rows, std::uint32_t n_cols,
             std::byte* packed) noexcept {
    const std::size_t n_whole = n_cols / kGroup, left = n_cols % kGroup, group_bytes = kQuantGroupBytes * n_rows;
    for (std::size_t row = 0; row < n_rows; ++row) {
        const float* from = x + row * x_stride;
        std::byte* group = packed;
        for (std::size_t i = 0; i < n_whole; ++i, from += kGroup, group += group_bytes)
            quantize(load(from), load(from + kLanes), row, n_rows, group);
        const std::byte* const end = packed + static_cast<std::size_t>(quant_groups(n_cols)) * group_bytes;
        for (std::size_t n = left; group < end; n = 0, group += group_bytes) {
            const std::size_t first = n < kLanes ? n : kLanes;
            quantize(load_part(from, first), load_part(from + first, n - first), row, n_rows, group);
        }
    }
}

}  // namespace
}  // namespace fovea
