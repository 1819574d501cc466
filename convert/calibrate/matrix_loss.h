// What a quantized type would lose of a matrix, and what that would cost the model.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convert/calibrate/calibration.h"
#include "convert/weights/model_source.h"
#include "host/base/progress.h"

namespace fovea {

/// The types among which a matrix's is chosen: all that are stored. MXFP4, ternary weights and q8_128 are among them only
/// where the source has the matrix in that type.
[[nodiscard]] std::vector<Type> candidate_types(const ModelSource& source, const TensorSpec& spec);

/// The loss of rows [row, row + 16) in that type, nothing where the source has them in it. `rows` are those rows,
/// [16][n_cols]; `panel` is what they become.
[[nodiscard]] QuantLoss panel_loss(const ModelSource& source, const Calibration* calibration, const TensorSpec& spec,
                                   Type type, std::uint32_t row, const std::vector<float>& rows,
                                   std::vector<std::byte>& panel);

/// A weight as f32, f16 or bf16 has it.
void store_weight(Type type, float value, std::byte* at) noexcept;

/// For each matrix and type of candidate_types the squared relative error Σ(error²) / Σ(weight²), with a calibration that of
/// its outputs, over up to sixteen panels spread evenly over the matrix. The same for any number of threads.
[[nodiscard]] std::vector<std::vector<double>> relative_losses(const ModelSource& source,
                                                               const Calibration* calibration,
                                                               const std::vector<TensorSpec>& matrices,
                                                               std::uint32_t n_threads);

/// What a unit of that error costs. Rounds each matrix in turn to three bits, and divides the change of what the model makes of
/// up to 4,096 of the texts' tokens by the error; both are in proportion (Malinovskii et al. 2024, the linearity theorem). The
/// change is the divergence of predictions, nats a token, of an encoder 1 − the cosine of vectors.
/// Takes the model's size in memory. Refuses what `calibrate` does.
[[nodiscard]] std::vector<double> sensitivities(const ModelSource& source, const Calibration& calibration,
                                                const std::vector<TensorSpec>& matrices, const Texts& texts,
                                                std::uint32_t n_threads, const Progress& progress);

}  // namespace fovea
