// Dot products of quantized weights: exact sums of a group, then its scale and minimum, for any format. Part of the scalar kernels.
#pragma once
#include "engine/format/half.h"
#include "engine/format/parts.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/scalar/math.h"
#include "engine/kernels/scalar/quant_group.h"
#include "engine/kernels/scalar/storage.h"

namespace fovea {
namespace {

/// The row of the operand whose columns start with `col`.
QuantGroup group_at(const Columns& c, std::size_t col) {
    return {static_cast<const std::byte*>(c.operand) + col / kGroup * kQuantGroupBytes * c.n_rows, c.n_rows};
}

/// sum[lane] = dot product of those columns of the panel's row `lane`, of q8 or q4: for each group fma(dot, w_scale·x_scale, sum).
template<Type kType>
void dot_quants(const Columns& c, float (&sum)[kLanes]) {
    for (float& s : sum) s = 0.0f;
    const QuantPanel panel{c.panel, kType};
    for (std::size_t col = c.begin; col < c.end; col += kGroup) {
        const QuantGroup x = group_at(c, col);
        std::int32_t dots[kLanes];
        dot_cells<kType == Type::q8>(panel.quants(col), x, c.row, dots);
        const std::byte* scales = panel.scales(col);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const float scale = F16::load(load<std::uint16_t>(scales + lane * 2)) * x.scale(c.row);
            sum[lane] = fma_f32(static_cast<float>(dots[lane]), scale, sum[lane]);
        }
    }
}

/// dots[lane] = the int32 sum over columns [begin, end) of several of the operand's groups. Cells of 8 bits are q8's.
void dot_broad(const QuantPanel& panel, std::size_t begin, std::size_t end, const Columns& c,
               std::int32_t (&dots)[kLanes]) {
    for (std::int32_t& dot : dots) dot = 0;
    for (std::size_t col = begin; col < end; col += kGroup) {
        std::int32_t more[kLanes];
        dot_cells<true>(panel.quants(col), group_at(c, col), c.row, more);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) dots[lane] += more[lane];
    }
}

/// dots[lane] = the int32 sum over a group of 32 or 16 columns of fewer bits. `bytes`: the 32 columns' quants, once unpacked.
void dot_narrow(const QuantPanel& panel, std::size_t col, const QuantGroup& x, std::uint32_t row,
                std::byte (&bytes)[kCells * kCellBytes], std::int32_t (&dots)[kLanes]) {
    const QuantFormat& format = panel.format;
    const bool nibbles = format.bits == 4 && !format.codebook;
    const std::size_t n = format.scale_columns / 4, first = col % kGroup / 4;
    if (!nibbles && first == 0) unpack(format, panel.quants(col), bytes);
    if (nibbles)
        dot_cells<false>(panel.quants(col), x, row, dots);
    else if (n == kCells)
        dot_cells<true>(bytes, x, row, dots);
    else
        dot_cells<true, kCells / 2>(bytes + first * kCellBytes, x, row, dots, first);
    const std::int32_t zero = nibbles ? format.zero - 8 : format.zero;
    const std::int32_t less = zero ? zero * x.sum(row, first, n) : 0;
    for (std::int32_t& dot : dots) dot -= less;
}

/// to[i] = the i-th half.
template<std::size_t n>
void load_halves(const std::byte* halves, float (&to)[n]) {
    for (std::size_t i = 0; i < n; ++i) to[i] = F16::load(load<std::uint16_t>(halves + 2 * i));
}

/// The scales and minima of a group of sixteen rows, and the factors of all groups over so many columns.
struct GroupScales {
    float scale[kLanes], minimum[kLanes], factor[2 * kLanes];

    /// Those of the group that starts with `col`. Groups come in order, from the first column that has the same factors.
    void read(const QuantPanel& panel, std::size_t col) {
        const QuantFormat& format = panel.format;
        const std::byte *scales = panel.scales(col), *minima = panel.minima(col);
        const bool nibbles = format.scale == QuantScale::nibble;
        if (!format.factors()) {
            if (format.scale == QuantScale::f16)
                load_halves(scales, scale);
            else
                for (std::uint32_t i = 0; i < kLanes; ++i) scale[i] = from_bf16(load<std::uint16_t>(scales + 2 * i));
            if (format.minima) load_halves(minima, minimum);
            return;
        }
        if (col % format.factor_columns() == 0) load_halves(panel.factors(col), factor);
        for (std::uint32_t i = 0; i < kLanes; ++i) {
            const auto small = format.scale == QuantScale::alone ? 1 : static_cast<std::int8_t>(scales[i]);
            scale[i] = factor[i] * static_cast<float>(nibbles ? small & 15 : small);
        }
        for (std::uint32_t i = 0; format.minima && i < kLanes; ++i) {
            const auto small = static_cast<std::int8_t>(minima[i]);
            minimum[i] = factor[kLanes + i] * static_cast<float>(nibbles ? small >> 4 & 15 : small);
        }
    }
};

/// sum[lane] as of dot_quants, of any quantized type. A group's minimum is taken from the sum of the operand's columns at their end:
/// sum[lane] = fma(−(x_scale·Σ quants), minimum, sum).
void dot_formats(const Columns& c, Type type, float (&sum)[kLanes]) {
    for (float& s : sum) s = 0.0f;
    const QuantPanel panel{c.panel, type};
    const std::size_t step = panel.format.scale_columns;
    std::byte bytes[kCells * kCellBytes];
    GroupScales group;
    for (std::size_t col = c.begin; col < c.end; col += step) {
        const QuantGroup x = group_at(c, col);
        std::int32_t dots[kLanes];
        if (panel.format.broad())
            dot_broad(panel, col, c.end - col < step ? c.end : col + step, c, dots);
        else
            dot_narrow(panel, col, x, c.row, bytes, dots);
        group.read(panel, col);
        const float x_scale = x.scale(c.row);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            sum[lane] = fma_f32(static_cast<float>(dots[lane]), group.scale[lane] * x_scale, sum[lane]);
        if (!panel.format.minima) continue;
        const float minus_total = static_cast<float>(-x.sum(c.row, col % kGroup / 4, step / 4)) * x_scale;
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            sum[lane] = fma_f32(minus_total, group.minimum[lane], sum[lane]);
    }
}

}  // namespace
}  // namespace fovea
