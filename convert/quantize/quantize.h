// Weights in groups of 32 columns: the panels of quantized types (see engine/format/panel.h).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/format/format.h"

namespace fovea {

/// The type in which a file of weights of type `wanted` holds that tensor: vectors, relative biases and routers are f32. Tables
/// that are only looked up and convolutions are f16 instead of quantized (tables f32 with `exact_tables`). The output layer of
/// four or five bits has six, of q4 eight, for no later layer mends errors.
[[nodiscard]] Type stored_type(const TensorSpec& spec, Type wanted, bool exact_tables = false) noexcept;

/// A quantized group: x ≈ quant·scale − minimum_factor, with factors x ≈ quant·(scale·multiple) −
/// minimum_factor·minimum.
struct QuantizedGroup {
    /// float16 (mxfp4: bfloat16); infinity if none is large enough, NaN if an x is not finite
    std::uint16_t scale = 0;
    std::uint16_t minimum_factor = 0;          ///< float16; without factors the minimum itself
    std::array<std::int8_t, 2> scales{};       ///< multiples of the factor: one, or two of sixteen columns each
    std::array<std::int8_t, 2> minima{};       ///< multiples too
    std::array<std::int8_t, kGroup> quants{};  ///< less QuantFormat::zero; an index if there is a codebook
};

/// Scale amax/127, quants −127 to 127.
[[nodiscard]] QuantizedGroup quantize_q8(const float (&x)[kGroup]) noexcept;

/// The scale with the least squared error of those tried, quants −8 to 7.
[[nodiscard]] QuantizedGroup quantize_q4(const float (&x)[kGroup]) noexcept;

/// Quantization error of a panel: Σ(x − quant·scale)² and Σx².
struct QuantLoss {
    double error = 0, total = 0;
    bool overflow = false;  ///< a scale was beyond float16
};

/// Quantizes rows [16][n_cols], sixteen groups side by side (convert/quantize/quantize_lanes.h), as quantize_q8 and quantize_q4 do
/// each, to the panel's bytes: panel_bytes(type, n_cols) of them, which are zero before. The same rows give the same
/// bytes on any host.
QuantLoss quantize_panel(Type type, const float* rows, std::uint32_t n_cols, std::byte* panel) noexcept;

/// Writes groups [16][n_groups] as they are to the panel's bytes, which are zero before.
void put_panel(Type type, const QuantizedGroup* groups, std::uint32_t n_groups, std::byte* panel) noexcept;

}  // namespace fovea
