// A model in words.
#pragma once
#include <string>

#include "fovea/config.h"
#include "host/model/parameters.h"
#include "host/model/report.h"

namespace fovea {

/// "gated delta rule"
[[nodiscard]] const char* recurrence_name(Recurrence kind);

/// A config in words, several lines that end with a line break: widths, heads, positions, norms, activation.
[[nodiscard]] std::string describe_config(const Config& config);

/// The table of parameters per part, with the first layer's heads; lines that end with a line break.
[[nodiscard]] std::string describe_parameters(const ParameterCount& count, const Config& config);

}  // namespace fovea
