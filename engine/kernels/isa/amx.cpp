// Flags come from fovea_isa() in CMakeLists.txt. Add no other include.
#include "../amx/tiles.h"

namespace fovea {
namespace {
constexpr TileKernels kTiles{.pack = pack_quants<kBroadGroup, true>, .matmul = matmul_by_tiles};
}
}  // namespace fovea

constinit const fovea::Kernels fovea::kernels_amx = {
    .isa = "amx",
    .needs = {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512vnni = true, .amx = true},
    .floats = fovea::floats_avx512,
    .quants = fovea::quants_avx512vnni,
    .tiles = &kTiles};
