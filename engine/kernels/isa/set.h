// The kernels of the instruction set FOVEA_ISA. Files of this folder include it alone, each compiled with the set's flags, which
// fovea_isa() in CMakeLists.txt gives.
#pragma once
#if defined(__arm__)  // of 32-bit NEON only the integers serve: its floats flush subnormal numbers to zero
#define FOVEA_NEON_INTEGERS
#include "engine/kernels/scalar/scalar.h"
#else
#include "engine/kernels/isa/vectors.h"
#endif
