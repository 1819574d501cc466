#include "engine/kernels/amx/tiles.h"

namespace fovea {
namespace {

template<int... i>
constexpr TileKernels make_tiles(std::integer_sequence<int, i...>) {
    return {.pack = pack_tiles<kGroup>,
            .pack_broad = pack_tiles<kBroadGroup>,
            .matmul = {matmul_by_tiles<quant_type(i)>...}};
}

}  // namespace

template<>
constinit const TileKernels TilesOf<Isa::FOVEA_ISA>::kernels = make_tiles(QuantIndices());

}  // namespace fovea
