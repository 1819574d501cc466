// AMX's instructions.
#pragma once
#include "engine/kernels/lanes/lanes.h"

namespace fovea {
namespace {

/// The operand of LDTILECFG (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, LDTILECFG).
struct TileConfig {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t n_rows[16] = {};

    /// Tiles of n rows; the operand's have so many columns; see tiles.h for what each tile is. Loading it takes some
    /// 200 cycles by Intel's tables, so a product does it once.
    FOVEA_LANES TileConfig(std::uint32_t n, std::uint32_t n_cols) {
        for (int tile = 0; tile < 8; ++tile) {
            n_rows[tile] = static_cast<std::uint8_t>(tile < 6 ? n : n_cols / 4);
            row_bytes[tile] = static_cast<std::uint16_t>(tile == 4 || tile == 5 ? n_cols : 64);
        }
    }
    FOVEA_LANES void load() const { asm volatile("ldtilecfg %0" : : "m"(*this)); }  // GCC's intrinsic reads eight bytes
};
static_assert(sizeof(TileConfig) == 64);

// Instructions name tiles by numbers. GCC's intrinsics take only literals for them, and do not say that a load reads memory.
template<int kTile>
FOVEA_LANES void clear_tile() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template<int kTile>
FOVEA_LANES void load_tile(const std::byte* rows) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(rows), "r"(std::size_t{64}) : "memory");
}
template<int kTile>
FOVEA_LANES void store_tile(std::byte* rows) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(rows), "r"(std::size_t{64}) : "memory");
}
/// kSums += the products of signed bytes of kOperand's rows and kCells' columns.
template<int kSums, int kOperand, int kCells>
FOVEA_LANES void multiply_tiles() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kOperand), "i"(kCells));
}

}  // namespace
}  // namespace fovea
