// An activation with numbers of its own in each layer.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// A phase: `width` elements of each row become their xIELU (FeedForwardShape::xielu), in place.
///
///   numbers  [4]  α, α', β and ε
void apply_xielu(Pass& pass, const float* numbers, const Rows& rows, std::uint32_t width) noexcept;

}  // namespace fovea
