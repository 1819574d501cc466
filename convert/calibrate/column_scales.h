// Column scales: which powers of two an input's columns are multiplied by, so that neither the input's largest columns nor
// those of the matrices that read it take the bits of the columns beside them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "convert/quantize/calibration.h"
#include "convert/weights/model_source.h"

namespace fovea {

/// What a text shows of an input.
struct SeenInput {
    std::vector<float> largest;  ///< [n] magnitude of each column
    std::vector<float> sample;   ///< [n_sampled][n] some of the rows
};

/// SmoothQuant's scales (Xiao et al. 2023, eq. 4 with α = 1/2), rounded to powers of two: the input's column is multiplied by
/// 2^round(log2(sqrt(weight / input)) − their mean), the two being the largest magnitudes of the column in the matrices and in
/// the inputs that a text shows. At most 2^8 and at least 2^−8; columns that either has nothing in count as far below the others.
[[nodiscard]] std::vector<float> column_scales(std::span<const float> input, std::span<const float> weight);

/// Those scales of one input, or none, with which `matrices`, which read it, lose less of their outputs as `type`: some of
/// their panels are rounded and some of the rows quantized both ways. None are ones, and so are those of matrices that have
/// quants in the source, which stay as they are. `moments`, of n_tokens tokens, become the factor of those of the input so
/// multiplied. Reads each matrix once.
[[nodiscard]] std::vector<float> choose_columns(const ModelSource& source, std::span<const TensorSpec> matrices,
                                                const SeenInput& seen, Type type, std::uint64_t n_tokens,
                                                InputMoments& moments);

/// Scales of one input that are 0 for at most kMaxOutliers outlier columns and 1 for others. A column that stands out costs the
/// columns that share its scale bits. Those that take the most of the rounding of the sampled rows are chosen two by two, as long
/// as two are worth their bytes beside `matrices`, which are of `type` and read the input. Reads each matrix once.
[[nodiscard]] std::vector<float> choose_outliers(const ModelSource& source, std::span<const TensorSpec> matrices,
                                                 const SeenInput& seen, Type type);

}  // namespace fovea
