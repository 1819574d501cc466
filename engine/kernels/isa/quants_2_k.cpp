#include "engine/kernels/isa/quants.h"

namespace fovea {
template struct QuantsOf<Isa::FOVEA_ISA, Type::q2_k>;
}  // namespace fovea
