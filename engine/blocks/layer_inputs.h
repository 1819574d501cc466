// What each token gives every layer beside the residual stream, and what a layer does with it behind its other parts.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// Every layer's part for each row of the pass, from what `embed` left: see Block::layer_input_width.
void make_layer_inputs(Pass& pass) noexcept;

/// Adds the layer's part to the stream, and multiplies the stream by the layer's scale, as far as the block has them.
void end_layer(Pass& pass, const Block& block) noexcept;

}  // namespace fovea
