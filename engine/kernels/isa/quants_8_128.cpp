#include "engine/kernels/isa/quants.h"

namespace fovea {
template struct QuantsOf<Isa::FOVEA_ISA, Type::q8_128>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::q5>;
}  // namespace fovea
