// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "engine/kernels/isa/table.h"

constinit const fovea::QuantKernels fovea::quants_avx512vnni = fovea::kQuants;
constinit const fovea::Kernels fovea::kernels_avx512vnni = fovea::make_table(
    "avx512vnni", {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512vnni = true}, fovea::floats_avx512);
