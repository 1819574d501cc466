// Sixteen groups of weights quantized side by side, one of each row of a panel: what quantize_q8 and quantize_q4 give,
// bit for bit, at the speed of vectors.
#pragma once
#include <cstdint>
#include <span>

#include "engine/format/format.h"

namespace fovea {

/// Sixteen quantized groups: lane i is row i's.
struct QuantizedLanes {
    std::uint16_t scales[kLanes];           ///< float16, as in QuantizedGroup
    std::int8_t quants[kGroup][kLanes];     ///< column by column
    double errors[kLanes], totals[kLanes];  ///< of each group Σ(x − quant·scale)² and Σx², columns in order
};

/// The same for one width of vectors. x [32][16]: column by column. As quantize_q8 and quantize_q4 of each lane.
struct LaneQuantizer {
    const char* isa;
    void (*q8)(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept;
    void (*q4)(const float (&x)[kGroup][kLanes], QuantizedLanes& out) noexcept;
};

/// The tables that this CPU can run, the fastest first. All give the same bits.
[[nodiscard]] std::span<const LaneQuantizer> lane_quantizers() noexcept;

}  // namespace fovea
