// Published shapes by configuration alone: enough to plan memory, count parameters and measure speed.
#pragma once
#include <span>
#include <string>

#include "fovea/config.h"

namespace fovea {

/// The configuration of that name, or host::Error (exit status 2) that lists them all.
[[nodiscard]] Config preset_config(const std::string& name);

[[nodiscard]] std::span<const char* const> preset_names() noexcept;

}  // namespace fovea
