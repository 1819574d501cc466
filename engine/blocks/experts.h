// Mixture of experts as phases of a pass: choose each row's, then compute expert by expert, each for the rows that chose it.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

struct Experts {
    /// A block's feed-forward part where it has experts, added to the residual stream.
    static void run(Pass& pass, const Layer& layer, const Block& block) noexcept;
};

}  // namespace fovea
