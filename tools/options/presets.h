// Published shapes by configuration alone: enough to plan memory, count parameters and measure speed.
#pragma once
#include <span>
#include <string>

#include "fovea/config.h"

namespace fovea {

/// The configuration of that name. Throws UsageError, which lists them all, if there is none.
[[nodiscard]] Config preset_config(const std::string& name);

/// Throws UsageError unless one of them is given.
void check_one_source(const std::string& model, const std::string& preset);

[[nodiscard]] std::span<const char* const> preset_names() noexcept;

}  // namespace fovea
