// DeepSeek's latent attention, which other families have too.
#pragma once
#include <string>

#include "convert/families/reading.h"

namespace fovea {

/// Widths of heads, and the scale of their scores, to which YaRN adds. `type`: the model's, of which two have rules of their own.
[[nodiscard]] LayerShape read_latent(const Fields& fields, const std::string& type, Block block);

}  // namespace fovea
