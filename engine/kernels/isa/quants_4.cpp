#include "engine/kernels/isa/quants.h"

namespace fovea {
template struct QuantsOf<Isa::FOVEA_ISA, Type::q4>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::iq4_nl>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::mxfp4>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::iq4_xs>;
}  // namespace fovea
