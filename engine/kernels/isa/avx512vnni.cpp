// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "../simd/table.h"

constinit const fovea::Kernels fovea::kernels_avx512vnni = fovea::make_table(
    "avx512vnni", {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512vnni = true}, fovea::floats_avx512);
