// Recurrent parts of blocks, in place of attention, and gates of attention's output.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

struct Recurrent {
    /// What a block's recurrent part makes of the stream's rows, added to the stream. Each sequence's state goes on.
    static void run(Pass& pass, const Block& block) noexcept;
};

}  // namespace fovea
