// Reads texts with a source's own model, for what they show of its matrices' inputs.
#pragma once
#include <cstdint>
#include <optional>

#include "convert/calibrate/calibration_text.h"
#include "convert/quantize/calibration.h"
#include "convert/weights/model_source.h"
#include "host/base/progress.h"

namespace fovea {

inline constexpr std::uint32_t kCalibrationTokens = 8192;  ///< that are worth reading

struct CalibrationOptions {
    std::uint32_t n_threads = 1;
    std::optional<Type> columns_for = {};  ///< column scales are chosen too, for matrices of that quantized type
    bool outliers = false;                 ///< outlier columns alone are chosen: matrices stay as the source has them
    Progress progress = {};                ///< tokens
};

/// Throws host::Error where `source` is neither a decoder for logits nor an encoder of ids, or has a block whose inputs are not
/// those of a plain one.
void check_calibrated(const ModelSource& source);

/// Runs `source`, as it is stored, over the texts. Takes the model's size in memory, and four bytes for half the square of
/// every matrix's columns. The same source and texts give the same bits on any host and any number of threads. Throws
/// host::Error, as check_calibrated does.
[[nodiscard]] Calibration calibrate(const ModelSource& source, const Texts& texts, const CalibrationOptions& options);

}  // namespace fovea
