#include "engine/kernels/isa/quants.h"

namespace fovea {
template struct QuantsOf<Isa::FOVEA_ISA, Type::q4_1>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::q5_1>;
}  // namespace fovea
