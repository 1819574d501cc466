// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#if defined(__aarch64__)
#include "engine/kernels/isa/table.h"
#else  // of 32-bit NEON only the integers serve: its floats flush subnormal numbers to zero
#define FOVEA_NEON_INTEGERS
#include "engine/kernels/scalar/scalar.h"
#endif

constinit const fovea::FloatKernels fovea::floats_neon = fovea::make_floats();
constinit const fovea::Kernels fovea::kernels_neon = fovea::make_table("neon", {.neon = true}, fovea::floats_neon);
