#include "engine/kernels/scalar/scalar.h"

constinit const fovea::FloatKernels fovea::floats_scalar = fovea::make_floats();
constinit const fovea::Kernels fovea::kernels_scalar = fovea::make_table("scalar", {}, fovea::floats_scalar);
