// Matrices of integers of a few bits: weight = scale · (quant − zero), with scales and zeros for groups of columns.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convert/packed/module.h"

namespace fovea {

/// Unsigned numbers by two indices, a row's and another (a column's or a group's), from the lowest bits of words up. One may
/// lie in two words.
struct PackedNumbers {
    const std::byte* data = nullptr;  // of any alignment
    std::uint32_t bits = 4;
    std::uint64_t row_bytes = 0, other_bytes = 0;  // from the words of an index to those of the next
    std::uint64_t step = 4;                        // bytes from a word to the next
    bool along_rows = false;                       // a word has numbers of several rows, not of several others
    bool interleaved = false;                      // AutoAWQ's: of eight the even ones come first
    bool is_signed = false;                        // bytes of signed numbers, to which 128 is added

    [[nodiscard]] std::uint32_t at(std::uint64_t row, std::uint64_t other) const noexcept;
};

struct IntegerMatrix {
    std::uint64_t n_rows = 0, n_cols = 0, n_groups = 1;
    PackedNumbers quants, zeros;
    bool has_zeros = false;               // else it is the middle of the bits
    bool zeros_less_one = false;          // what is stored, modulo the bits
    Factors scales;                       // [rows, groups]
    std::vector<std::uint32_t> group_of;  // of each column

    [[nodiscard]] std::int32_t zero(std::uint64_t row, std::uint64_t group) const noexcept;
};

/// Groups of `size` columns each, the last maybe of fewer.
[[nodiscard]] std::vector<std::uint32_t> groups_in_order(std::uint64_t n_cols, std::uint64_t size);

/// Reads the groups of columns from an int32 tensor. Throws host::Error for one that is not below n_groups.
[[nodiscard]] std::vector<std::uint32_t> read_group_of(PackedModule& module, const char* part, std::uint64_t n_cols,
                                                       std::uint64_t n_groups);

/// Panels of q4 if every quant less its zero is in −8 to 7, else of q8 if every one is in −128 to 127. Each 32 columns must be
/// of one group of the source, and float16 must hold the scales.
[[nodiscard]] PackedMatrix integer_matrix(IntegerMatrix matrix);

}  // namespace fovea
