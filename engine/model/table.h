// Tables that rows are looked up in: of embeddings, positions and what is like them.
#pragma once
#include <cstring>

#include "engine/format/half.h"
#include "engine/format/panel.h"
#include "engine/format/parts.h"

namespace fovea {

/// A table of [n_rows][n_cols], row by row or, with a panel_stride, in panels.
struct Table {
    const std::byte* data;
    Type type;
    std::uint64_t panel_stride;  // bytes; 0: rows
    std::uint32_t n_cols;
};

[[nodiscard]] inline float element(const std::byte* data, Type type, std::uint64_t index) noexcept {
    if (type == Type::f32) {
        float value;
        std::memcpy(&value, data + index * 4, 4);
        return value;
    }
    std::uint16_t half;
    std::memcpy(&half, data + index * 2, 2);
    return !has(Part::bf16) || type == Type::f16 ? from_f16(half) : from_bf16(half);
}

/// Calls put(i, x) with each element from `begin` to `end` of one row. A table of panels keeps a row's elements 16 apart.
void read_table_row(const Table& t, std::uint32_t row, std::uint32_t begin, std::uint32_t end, auto&& put) noexcept {
    const std::byte* data = t.data;
    std::uint64_t at = std::uint64_t{row} * t.n_cols, step = 1;
    if (t.panel_stride) {
        data += row / kLanes * t.panel_stride;
        at = row % kLanes;
        if (is_quantized(t.type)) {
            const QuantPanel panel{data, t.type};
            for (std::uint32_t i = begin; i < end; ++i) put(i, panel.weight(i, at));
            return;
        }
        step = kLanes;
    }
    for (std::uint32_t i = begin; i < end; ++i) put(i, element(data, t.type, at + i * step));
}

}  // namespace fovea
