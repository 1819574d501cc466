// Mixture of experts as phases of a pass: choose each row's, then compute expert by expert, each for the rows that chose it.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

struct Experts {
    /// A block's feed-forward part where it has experts, added to the residual stream. One parallel to attention is computed before
    /// attention's output is added, and added behind it.
    static void compute(Pass& pass, const Layer& layer, const Block& block) noexcept;
    static void add(Pass& pass, const Layer& layer, const Block& block) noexcept;
};

}  // namespace fovea
