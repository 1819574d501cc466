// How elements are stored, and which of them a dot product takes. Part of the scalar kernels.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/format/half.h"
#include "engine/kernels/scalar/math.h"
#include "fovea/type.h"

namespace fovea {
namespace {

struct F32 {
    static constexpr Type kType = Type::f32;
    using Element = float;
    static float load(float x) { return x; }
    static float store(float x) { return canonical(x); }
};

struct F16 {
    static constexpr Type kType = Type::f16;
    using Element = std::uint16_t;
#if defined(__ARM_FP16_FORMAT_IEEE)
    static float load(std::uint16_t x) { return std::bit_cast<__fp16>(x); }  // one instruction
#else
    static float load(std::uint16_t x) { return from_f16(x); }
#endif
    static std::uint16_t store(float x) { return to_f16(x); }
};

struct Bf16 {
    using Element = std::uint16_t;
    static float load(std::uint16_t x) { return from_bf16(x); }
};

template<Type kQuantized>
struct Quants {
    static constexpr Type kType = kQuantized;
};

/// Columns [begin, end) of a panel and of row `row` of an operand of n_rows.
struct Columns {
    const std::byte* panel;
    const void* operand;
    std::size_t begin, end;
    std::uint32_t row, n_rows;
};

}  // namespace
}  // namespace fovea
