// What follows the layers.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

struct StackHead {
    static void plan(const Planning& planning) noexcept;
    /// The logits of the rows that want them.
    static void logits(Pass& pass) noexcept;
    /// What the layers leave, normed, with the stack's head behind it, to pass.out: of each row, or of each sequence.
    static void vectors(Pass& pass) noexcept;
};

}  // namespace fovea
