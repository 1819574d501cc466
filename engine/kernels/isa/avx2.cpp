// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "engine/kernels/isa/table.h"

constinit const fovea::FloatKernels fovea::floats_avx2 = fovea::make_floats();
constinit const fovea::Kernels fovea::kernels_avx2 =
    fovea::make_table("avx2", {.avx2 = true, .fma = true, .f16c = true}, fovea::floats_avx2);
