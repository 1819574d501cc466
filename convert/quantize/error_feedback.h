// Rounding that knows its inputs: columns that are rounded later take back the change that one column's rounding makes
// to an output.
#pragma once
#include <cstddef>
#include <cstdint>

#include "convert/quantize/calibration.h"
#include "convert/quantize/quantize.h"

namespace fovea {

/// As quantize_panel, of rows [16][n_cols], with the factored moments L of the matrix's inputs. Rounds from the last column
/// to the first: column j to the nearest of w_j + Σ_{k>j} L_kj·(w_k − q_k) / L_jj, groups with the scales that are best
/// for those numbers. This is GPTQ's rounding in reverse order (Frantar et al. 2023), or Babai's nearest plane (Chen et
/// al. 2025). Then up to n_rounds times, while anything changes: every float16 scale, then every column takes the value
/// that is best while all others stay, which can only lower the loss. The loss is that of the outputs: Σ‖Lᵀ·(w − q)‖²
/// and Σ‖Lᵀ·w‖².
QuantLoss quantize_panel(Type type, const float* rows, std::uint32_t n_cols, const InputMoments& factor,
                         std::byte* panel, std::uint32_t n_rounds = 2);

}  // namespace fovea
