// Gates of attention's output.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// Multiplies the merged heads of every row by sigmoid(W·norm(x)) or softplus(W·norm(x)), which goes by way of `projected`.
void gate_output(Pass& pass, const Layer& layer, const Block& block, const Rows& merged) noexcept;

}  // namespace fovea
