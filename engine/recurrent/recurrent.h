// Recurrent parts of blocks, in place of attention.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

struct Recurrent {
    /// What a block's recurrent part makes of the stream's rows, to `attended`: what its output map reads. Each sequence's state goes
    /// on. `norm`: of the stream.
    static void mix(Pass& pass, const Block& block, const NormWeights& norm) noexcept;
};

}  // namespace fovea
