// From frames of sound to rows.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

struct Hearing {
    static void plan(const Planning& planning) noexcept;
    /// What `embed` reads, to `hidden`.
    static void convolve(Pass& pass) noexcept;
};

}  // namespace fovea
