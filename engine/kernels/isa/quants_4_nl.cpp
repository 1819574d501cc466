#include "engine/kernels/isa/quants.h"

namespace fovea {
template struct QuantsOf<Isa::FOVEA_ISA, Type::iq4_nl>;
template struct QuantsOf<Isa::FOVEA_ISA, Type::mxfp4>;
}  // namespace fovea
