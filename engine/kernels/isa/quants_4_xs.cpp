#include "engine/kernels/isa/quants.h"

namespace fovea {
template struct QuantsOf<Isa::FOVEA_ISA, Type::iq4_xs>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::tq2_0>;
}  // namespace fovea
