#include "scalar.h"

constinit const fovea::Kernels fovea::kernels_scalar = fovea::make_table("scalar", {});
