// Rows of activations become the operand of a product: floats side by side, or quants. Part of the scalar kernels.
#pragma once
#include "engine/kernels/constants.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/scalar/math.h"

#include "engine/format/parts.h"

#include "engine/kernels/math.h"

namespace fovea {
namespace {

void pack(const float* x, std::size_t x_stride, std::uint32_t n_rows, std::uint32_t n_cols, float* packed) noexcept {
    for (std::size_t col = 0; col < n_cols; ++col)
        for (std::uint32_t row = 0; row < n_rows; ++row) packed[col * n_rows + row] = x[row * x_stride + col];
}

/// Up to kWidth columns of a row that share a scale; what is missing counts as 0.
template<std::size_t kWidth>
void quantize(const float* x, std::size_t n, std::int8_t (&quants)[kWidth], float& scale) {
    std::uint32_t top = 0;
    for (std::size_t i = 0; i < n; ++i) top = bits(magnitude(x[i])) > top ? bits(magnitude(x[i])) : top;
    const float amax = float_of(top);
    const bool finite = top < 0x7f800000u;
    for (std::int8_t& quant : quants) quant = 0;
    scale = finite ? 0.0f : float_of(kNan);
    if (!finite || amax < kQuantMin) return;
    scale = amax / 127.0f;
    const float inverse = 127.0f / amax;
    for (std::size_t i = 0; i < n; ++i) quants[i] = static_cast<std::int8_t>(bits(x[i] * inverse + kRound) & 0xffu);
}

/// pack_q8 and pack_broad: groups of 32 columns. kWidth columns share a scale, and their first group has their start.
template<std::size_t kWidth>
void pack_quants(const float* x, std::size_t x_stride, const float* columns, std::uint32_t n_rows, std::uint32_t n_cols,
                 std::byte* packed) noexcept {
    const std::size_t n_padded = static_cast<std::size_t>(quant_groups(n_cols)) * kGroup;
    for (std::size_t begin = 0; begin < n_padded; begin += kWidth) {
        const std::size_t left = begin < n_cols ? n_cols - begin : 0, n = left < kWidth ? left : kWidth;
        const std::size_t n_groups =
            kWidth == kGroup || n_padded - begin >= kWidth ? kWidth / kGroup : kSuperblock / kGroup;
        for (std::uint32_t row = 0; row < n_rows; ++row) {
            std::int8_t quants[kWidth];
            float scale;
            const float* from = x + row * x_stride + (n ? begin : 0);
            float scaled[kWidth];
            if (has(Part::columns) && columns) {
                for (std::size_t i = 0; i < n; ++i) scaled[i] = from[i] * columns[begin + i];
                from = scaled;
            }
            quantize(from, n, quants, scale);
            std::int32_t sum = 0;
            for (const std::int8_t quant : quants) sum += quant;
            std::byte* group = packed;
            for (std::size_t i = 0; i < n_groups; ++i, group += kQuantGroupBytes * n_rows, sum = 0) {
                const std::int32_t start8 = -128 * sum, start4 = -8 * sum;
                for (std::size_t cell = 0; cell < kGroup / 4; ++cell)
                    __builtin_memcpy(group + (cell * n_rows + row) * 4, quants + i * kGroup + cell * 4, 4);
                std::byte* const scales = group + kGroup * n_rows;
                std::byte* const starts = scales + 4 * n_rows;
                __builtin_memcpy(scales + row * 4, &scale, 4);
                __builtin_memcpy(starts + row * 4, &start8, 4);
                __builtin_memcpy(starts + (n_rows + row) * 4, &start4, 4);
            }
        }
        packed += n_groups * kQuantGroupBytes * n_rows;
    }
}

}  // namespace
}  // namespace fovea
