#include "engine/kernels/scalar/scalar.h"

namespace fovea {
namespace {

template<int... i>
constexpr QuantKernels make_quants(std::integer_sequence<int, i...>) {
    return {{quant_kernels<quant_type(i)>()...}};
}
constexpr FloatKernels kFloats = make_floats();
constexpr QuantKernels kQuantKernels = make_quants(QuantIndices());

}  // namespace

constinit const Kernels kernels_scalar = {.isa = "scalar", .needs = {}, .floats = kFloats, .quants = kQuantKernels};

}  // namespace fovea
