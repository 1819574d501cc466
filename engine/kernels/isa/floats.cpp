#include "engine/kernels/isa/set.h"

namespace fovea {

template<>
constinit const FloatKernels FloatsOf<Isa::FOVEA_ISA>::kernels = make_floats();

}  // namespace fovea
