// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "engine/kernels/amx/tiles.h"

namespace fovea {
namespace {
template<int... i>
constexpr TileKernels make_tiles(std::integer_sequence<int, i...>) {
    return {.pack = pack_tiles<kGroup>,
            .pack_broad = pack_tiles<kBroadGroup>,
            .matmul = {matmul_by_tiles<quant_type(i)>...}};
}
constexpr TileKernels kTiles = make_tiles(QuantIndices());
}  // namespace
}  // namespace fovea

constinit const fovea::Kernels fovea::kernels_amx = {
    .isa = "amx",
    .needs = {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512vnni = true, .amx = true},
    .floats = fovea::floats_avx512,
    .quants = fovea::quants_avx512vnni,
    .tiles = &kTiles};
