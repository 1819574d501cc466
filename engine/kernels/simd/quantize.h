// Rows of activations become int8 in groups of 32, packed for a matmul with quantized weights.
#pragma once
#include "math.h"
#include "quants.h"

namespace fovea {
namespace {

/// Quantizes row `row` of a packed group from its first and second sixteen columns.
FOVEA_LANES void quantize(F32x16 x0, F32x16 x1, std::uint32_t row, std::uint32_t n_rows, std::byte* group) {
    // A maximum would lose a NaN: x − x is 0 where x is finite, else NaN.
    const bool finite = fold_sum((x0 - x0) + (x1 - x1)) == 0.0f;
    const float amax = fold_max(max(magnitude(x0), magnitude(x1)));
    const bool some = finite && !(amax < kQuantMin);
    const float scale = some ? amax / 127.0f : finite ? 0.0f : __builtin_bit_cast(float, 0x7fc00000u);
    alignas(16) std::byte quants[kGroup] = {};
    std::int32_t sum = 0;
    if (some) {
        const F32x16 inverse = splat(127.0f / amax), round = splat(kRound);
        const F32x16 t0 = x0 * inverse + round, t1 = x1 * inverse + round;
        store_bytes(bits(t0), quants);
        store_bytes(bits(t1), quants + kLanes);
        sum = static_cast<std::int32_t>(fold_sum((t0 - round) + (t1 - round)));  // of small integers: exact
    }
    for (std::uint32_t cell = 0; cell < kGroup / 4; ++cell)
        __builtin_memcpy(group + (cell * n_rows + row) * 4, quants + cell * 4, 4);
    std::byte* const at = group + kGroup * n_rows + row * 4;
    const std::int32_t start8 = -128 * sum, start4 = -8 * sum;
    __builtin_memcpy(at, &scale, 4);
    __builtin_memcpy(at + 4 * n_rows, &start8, 4);
    __builtin_memcpy(at + 8 * n_rows, &start4, 4);
}

void pack_q8(const float* x, std::size_t x_stride, std::uint32_t n_rows, std::uint32_t n_cols,
             std::byte* packed) noexcept {
    const auto n_groups = static_cast<std::uint32_t>(quant_groups(n_cols));
    for (std::uint32_t row = 0; row < n_rows; ++row) {
        const float* from = x + row * x_stride;
        std::byte* group = packed;
        std::size_t left = n_cols;
        for (std::uint32_t i = 0; i < n_groups; ++i, group += std::size_t{kQuantGroupBytes} * n_rows) {
            if (left >= kGroup) {
                quantize(load(from), load(from + kLanes), row, n_rows, group);
                from += kGroup;
                left -= kGroup;
                continue;
            }
            const std::size_t first = left < kLanes ? left : kLanes;
            quantize(load_part(from, first), load_part(from + first, left - first), row, n_rows, group);
            from += left;
            left = 0;
        }
    }
}

}  // namespace
}  // namespace fovea
