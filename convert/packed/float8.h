// Matrices of float8 numbers (OCP 8-bit floating point, 2023: E4M3), with a scale for each block of rows and columns.
#pragma once
#include <bit>
#include <cstdint>

#include "convert/packed/module.h"

namespace fovea {

/// Four bits of exponent, biased by 7, and three of fraction; no infinities, and NaN if all of these bits are set.
[[nodiscard]] constexpr float from_e4m3(std::uint8_t bits) noexcept {
    const std::uint32_t sign = std::uint32_t{bits & 0x80u} << 24, exponent = bits >> 3 & 15u, fraction = bits & 7u;
    if ((bits & 0x7f) == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
    if (exponent == 0)  // units of 2^-9
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-9f));
    return std::bit_cast<float>(sign | (exponent + 120) << 23 | fraction << 20);
}

struct Float8Matrix {
    const std::byte* data = nullptr;
    std::uint64_t n_cols = 0;
    Factors scales;  // of blocks
    std::uint64_t block_rows = 1, block_cols = 1;
};

/// weight = number · scale, rounded to float32; without --type bfloat16, as transformers has them when it dequantizes.
[[nodiscard]] PackedMatrix float8_matrix(const Float8Matrix& matrix);

/// Reads [rows, columns] of a block from a list of two numbers.
struct BlockSize {
    std::uint64_t rows = 0, cols = 0;
};
[[nodiscard]] BlockSize read_block_size(const Fields& fields, const char* name);

/// A module's `weight` of float8, whose scales are a tensor's `part`: one for each block, if there are blocks, else one
/// for each row or one for all. Throws host::Error.
void unpack_float8(PackedModule& module, const char* part, BlockSize block);

}  // namespace fovea
