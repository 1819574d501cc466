// How a matrix lies in a file: panels of sixteen rows, column after column. For quantized types one row of a table says
// all that the kernels, the reader and the writer need to know. docs/format.md has the same in words.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/format/parts.h"
#include "fovea/type.h"

namespace fovea {

inline constexpr std::uint32_t kLanes = 16;           // rows of a panel
inline constexpr std::uint32_t kGroup = 32;           // columns of an operand whose quants share a scale
inline constexpr std::uint32_t kBroadGroup = 128;     // the same, of operands in broad groups
inline constexpr std::uint32_t kSuperblock = 64;      // columns of a panel's unit: two groups
inline constexpr std::uint32_t kFactorColumns = 256;  // columns that share factors, if there are any

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t x, std::uint64_t multiple) noexcept {
    return (x + multiple - 1) / multiple * multiple;
}

[[nodiscard]] constexpr bool is_quantized(Type type) noexcept { return type > Type::bf16; }

/// The scale of a group's quants.
enum class QuantScale : std::uint8_t {
    f16,     ///< a float16 for each group and row
    bf16,    ///< a bfloat16
    factor,  ///< an int8 for each group and row, times a float16 for each row and 256 columns
    nibble,  ///< the low four bits of a byte in place of the int8; the high ones are the minimum
    alone,   ///< that float16; the groups' own factors are 1
};

/// weight = scale·quant − minimum. A unit, 64 columns of a panel, is
///   scales    [groups][16], each a float16, a bfloat16 or an int8, or nothing
///   minima    [groups][16] if there are any that are not in the scales' bytes: bytes, or float16 if scales are
///   quants    [2] of 32 columns: 8 bits: int8 [8][16][4], four columns, row, column. Else planes of bits, the lowest first:
///     4 bits  [4][16][4]: the low nibble of byte j is column 8·i + j, the high one column 8·i + 4 + j
///     2 bits  [2][16][4]: bits 2·k and 2·k + 1 of byte j are column 16·i + 4·k + j
///     1 bit   [16][4]: bit k of byte j is column 4·k + j
/// With factors, four units (broad: two) follow 64 bytes: float16 factors [16] of the scales and [16] of the minima.
struct QuantFormat {
    std::uint8_t bits;           ///< of a stored quant: 8, 6, 5, 4, 3 or 2
    std::uint8_t scale_columns;  ///< columns of a group that shares a scale: 32 or 16; broad: 128
    QuantScale scale;
    bool minima;                  ///< a group's minimum is an int8, or four bits, times a factor; or a float16
    std::int32_t zero;            ///< what is taken from a stored quant; one of 8 bits is signed
    const std::int8_t* codebook;  ///< [16] what stored quants stand for; null: themselves

    /// Whether the operand's quants are to share a scale over as many columns: see Kernels::pack_broad.
    [[nodiscard]] constexpr bool broad() const noexcept {
        return has(Part::gguf_types) && scale_columns == kBroadGroup;
    }
    /// Groups of a unit, each with a scale.
    [[nodiscard]] constexpr std::uint32_t n_groups() const noexcept {
        return broad() ? 1 : kSuperblock / scale_columns;
    }
    [[nodiscard]] constexpr std::uint32_t factor_columns() const noexcept {
        return broad() ? kBroadGroup : kFactorColumns;
    }
    [[nodiscard]] constexpr bool factors() const noexcept {
        return has(Part::gguf_types) && scale >= QuantScale::factor;
    }
    /// Bytes of a group's scale, and of its minimum.
    [[nodiscard]] constexpr std::uint32_t scale_bytes() const noexcept {
        if (!factors()) return 2;
        return scale == QuantScale::alone ? 0 : 1;
    }
    [[nodiscard]] constexpr std::uint32_t minimum_bytes() const noexcept { return factors() ? 1 : 2; }
    [[nodiscard]] constexpr std::uint32_t head_bytes() const noexcept { return factors() ? 64 : 0; }
    /// Where a unit's minima and quants start, and its size.
    [[nodiscard]] constexpr std::uint32_t minima_at() const noexcept {
        return factors() && scale == QuantScale::nibble ? 0 : n_groups() * kLanes * scale_bytes();
    }
    [[nodiscard]] constexpr std::uint32_t quants_at() const noexcept {
        const bool any = has(Part::gguf_types) && minima;
        const std::uint32_t n_minima = any ? n_groups() * kLanes : 0;  // of nibbles they are the scales' bytes
        return minima_at() + n_minima * minimum_bytes();
    }
    [[nodiscard]] constexpr std::uint32_t group_bytes() const noexcept { return kLanes * kGroup * bits / 8; }
    [[nodiscard]] constexpr std::uint32_t unit_bytes() const noexcept { return quants_at() + 2 * group_bytes(); }
    /// Where a panel's unit starts, and the factors over it.
    [[nodiscard]] constexpr std::uint64_t unit_at(std::uint64_t unit) const noexcept {
        return (unit / units_of_factors() + 1) * head_bytes() + unit * unit_bytes();
    }
    [[nodiscard]] constexpr std::uint64_t head_at(std::uint64_t unit) const noexcept {
        return unit / units_of_factors() * (head_bytes() + units_of_factors() * unit_bytes());
    }
    [[nodiscard]] constexpr std::uint32_t units_of_factors() const noexcept { return factor_columns() / kSuperblock; }
};

/// ggml's codebooks of IQ4_NL and, doubled, of MXFP4 (OCP Microscaling Formats 1.0, 2023: E2M1).
inline constexpr std::int8_t kNonlinear4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::int8_t kFloat4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// The formats of the quantized types, in Type's order from q8 on.
inline constexpr QuantFormat kQuantFormats[] = {
    {8, 32, QuantScale::f16, false, 0, nullptr},         // q8
    {4, 32, QuantScale::f16, false, 8, nullptr},         // q4
    {6, 16, QuantScale::factor, false, 32, nullptr},     // q6_k
    {5, 32, QuantScale::factor, true, 0, nullptr},       // q5_k
    {4, 32, QuantScale::factor, true, 0, nullptr},       // q4_k
    {4, 32, QuantScale::f16, false, 0, kNonlinear4},     // iq4_nl
    {4, 32, QuantScale::bf16, false, 0, kFloat4},        // mxfp4
    {3, 16, QuantScale::factor, false, 4, nullptr},      // q3_k
    {2, 16, QuantScale::nibble, true, 0, nullptr},       // q2_k
    {4, 32, QuantScale::factor, false, 0, kNonlinear4},  // iq4_xs
    {2, 32, QuantScale::alone, false, 1, nullptr},       // tq2_0
    {8, 128, QuantScale::alone, false, 0, nullptr},      // q8_128
    {5, 32, QuantScale::f16, false, 16, nullptr},        // q5
    {4, 32, QuantScale::f16, true, 0, nullptr},          // q4_1
    {5, 32, QuantScale::f16, true, 0, nullptr},          // q5_1
};
inline constexpr int kQuantTypeCount = kTypeCount - static_cast<int>(Type::q8);
static_assert(sizeof kQuantFormats / sizeof *kQuantFormats == kQuantTypeCount);
/// Those that a build has: without the types after q4, which it refuses, q8's and q4's.
inline constexpr int kQuantTypesBuilt = has(Part::gguf_types) ? kQuantTypeCount : 2;
inline constexpr auto kBuiltFormats = [] {
    std::array<QuantFormat, kQuantTypesBuilt> built{};
    for (int i = 0; i < kQuantTypesBuilt; ++i) built[static_cast<std::size_t>(i)] = kQuantFormats[i];
    return built;
}();

/// The i-th of them.
[[nodiscard]] constexpr Type quant_type(int i) noexcept { return static_cast<Type>(static_cast<int>(Type::q8) + i); }
/// The format of a quantized type.
[[nodiscard]] constexpr const QuantFormat& format_of(Type type) noexcept {
    const auto i = static_cast<std::size_t>(type) - static_cast<std::size_t>(Type::q8);
    return kBuiltFormats[has(Part::gguf_types) || i < kBuiltFormats.size() ? i : 0];
}

/// The operand that products with a type want: floats, or quants that share a scale over so many columns.
enum class OperandKind : std::uint8_t { floats, groups, broad_groups };
inline constexpr int kOperandKinds = 3;
[[nodiscard]] constexpr OperandKind operand_kind(Type type) noexcept {
    if (!is_quantized(type)) return OperandKind::floats;
    return format_of(type).broad() ? OperandKind::broad_groups : OperandKind::groups;
}

/// Bytes of one panel of `n_cols` columns. n_cols below 2^32, so nothing overflows. Plain types are [col][16]; for
/// quantized ones see QuantFormat: a last unit is whole, with zeros beyond n_cols.
[[nodiscard]] constexpr std::uint64_t panel_bytes(Type type, std::uint64_t n_cols) noexcept {
    if (!is_quantized(type)) return n_cols * kLanes * (type == Type::f32 ? 4 : 2);
    const QuantFormat& f = format_of(type);
    const std::uint64_t n_units = (n_cols + kSuperblock - 1) / kSuperblock;
    return n_units * f.unit_bytes() + (n_cols + f.factor_columns() - 1) / f.factor_columns() * f.head_bytes();
}

/// Outlier columns of a quantized matrix (Dettmers et al. 2022, section 3.2): those whose column scale is 0. Their inputs are not
/// quantized, and their weights, float16 [n_outliers][16], follow the units of each panel.
inline constexpr std::uint32_t kMaxOutliers = 4;
[[nodiscard]] constexpr std::uint64_t outliers_at(Type type, std::uint64_t n_cols) noexcept {
    return panel_bytes(type, n_cols);
}
inline constexpr std::uint32_t kOutlierBytes = kLanes * 2;  // of one, in a panel

}  // namespace fovea
