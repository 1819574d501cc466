#include "engine/kernels/isa/quants.h"

namespace fovea {
template struct QuantsOf<Isa::FOVEA_ISA, Type::q5_k>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::q4_k>;
}  // namespace fovea
