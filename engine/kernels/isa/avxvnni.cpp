// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "engine/kernels/isa/table.h"

constinit const fovea::Kernels fovea::kernels_avxvnni =
    fovea::make_table("avxvnni", {.avx2 = true, .fma = true, .f16c = true, .avxvnni = true}, fovea::floats_avx2);
