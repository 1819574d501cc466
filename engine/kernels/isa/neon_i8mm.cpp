// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "engine/kernels/isa/table.h"

constinit const fovea::Kernels fovea::kernels_neon_i8mm =
    fovea::make_table("neon_i8mm", {.neon = true, .dotprod = true, .i8mm = true}, fovea::floats_neon);
