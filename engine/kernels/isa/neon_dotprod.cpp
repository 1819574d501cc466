// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "engine/kernels/isa/table.h"

constinit const fovea::Kernels fovea::kernels_neon_dotprod =
    fovea::make_table("neon_dotprod", {.neon = true, .dotprod = true}, fovea::floats_neon);
