// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "../simd/table.h"

constinit const fovea::Kernels fovea::kernels_neon = fovea::make_table("neon", {.neon = true});
