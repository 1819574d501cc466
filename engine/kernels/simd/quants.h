// Integer products of quantized weights, sixteen rows at a time, and the only place that knows their instructions.
//
//   QuantTiling            tile shapes: kRows, kLiveSums, kMostPanels, kStreamRows, kOperandBytes as in Tiling; kPairs: see
//                          make_pairs
//   Bytes                  64 of them: a cell (four columns of sixteen rows)
//   bytes(p), store(x, p)  p[0..64), 64-byte aligned if stored
//   low_nibbles(w), high_nibbles(w), a | b
//   join_nibbles(w, high, more)  either, | more
//   moved_bits(w, from, to, mask)  each byte's bits from bit `from` on moved to where bit `to` is, those of the mask
//   signed_cell(w)         int8 weights as add_products wants them
//   less(w, n)             w − n by bytes
//   lookup(w, table)       int8 that nibbles stand for
//   codebook_cell(w, codebook)  the same of those that nibbles stand for
//   centred_cell<zero>(w)  the same of unsigned ones from which zero is to be taken, of types that sums_own is true of
//   store_bytes(x, p)      the lowest byte of each of sixteen words
//   Dot                    sixteen rows' sums over a group, in whatever parts
//   Starts<type, kRows>(x, n_packed, x_scales)  where the sums of a group start, if weights are multiplied as unsigned,
//                          see Kernels::pack_q8: of(r) for each of kRows rows, or null if they start at zero. For types
//                          with minima: −Σ·scale of the quants that share one, a float
//                          (..., known) the same of starts that were made before, [kRows], or null
//   begin_sum<type>(start) before the first products
//   add_columns(dot, weight, group, pair, x, n_packed, last, after)  products of two cells of each panel, eight
//                          columns, with those columns of kRows rows, which are at x and at x + 4·n_packed; if they are
//                          the `last` ones, after(r) after row r's
//   end_sum<type>(dot, start)  the sums as floats: exact, as |sum| <= 32·128·127 < 2^24
//   keep(dot)              in registers, for all that the compiler knows
//   kSameProducts          whether all types' cells are multiplied by one instruction, with whatever bits
// With kPairs, for many rows, which go by twos (without, make_pairs does nothing):
//   make_pairs(cell)       two cells, ready for add_pairs
//   add_pairs<kRows>(dot, weight, group, pair, x, n_packed)  as add_columns; two Dots hold two rows' sums
//   split_rows(a, b)       into one row's and the other's
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/lanes/lanes.h"
#include "engine/kernels/simd/product.h"

namespace fovea {
namespace {

/// Four quants, or one int32, as they are.
FOVEA_LANES int word(const std::byte* p) {
    int x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
}
FOVEA_LANES float number(const std::byte* p) { return __builtin_bit_cast(float, word(p)); }

/// Whether quants are multiplied unsigned, as they are stored. pack_q8's sums then correct for their zero.
[[nodiscard]] constexpr bool has_packed_zero(Type type) {
    return format_of(type).zero >= 8 && format_of(type).scale_columns == kGroup;
}

/// Starts of sums that begin at zero: pack_q8's starts are added last, and only for such types.
template<Type kType>
struct LateStarts {
    const std::byte* first;
    FOVEA_LANES LateStarts(const std::byte*, std::size_t n_packed, const std::byte* x_scales,
                           const std::byte* = nullptr)
        : first(x_scales + 8 * n_packed) {}
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return has_packed_zero(kType) ? first + 4 * r : nullptr; }
};

/// Whether pack_q8's starts of a group's sum are of no use: its halves have their own.
[[nodiscard]] constexpr bool sums_own(Type type) { return format_of(type).scale_columns == 16; }

/// −Σ·scale of a type's group of an operand's quants, by rows, without vectors of them: four at a time, each plus 128, in
/// two sums of 16 bits.
template<Type kType, std::uint32_t kRows>
struct MinusTotals {
    static constexpr std::uint32_t kOfUnit = kSuperblock / format_of(kType).scale_columns;  // groups with starts
    float minus[kRows];
    const std::byte* at;
    FOVEA_LANES MinusTotals(const std::byte* x, std::size_t n_packed, const std::byte* x_scales,
                            const std::byte* known = nullptr)
        : at(known) {
        if (known) return;
        at = reinterpret_cast<const std::byte*>(minus);
        constexpr std::uint32_t kCols = format_of(kType).scale_columns;
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            std::uint32_t sums = 0;
            FOVEA_UNROLL for (std::uint32_t cell = 0; cell < kCols / 4; ++cell) {
                const std::uint32_t four =
                    static_cast<std::uint32_t>(word(x + 4 * (cell * n_packed + r))) ^ 0x80808080u;
                sums += (four & 0xff00ffu) + (four >> 8 & 0xff00ffu);
            }
            const auto total =
                static_cast<std::int32_t>(128 * kCols) - static_cast<std::int32_t>((sums & 0xffffu) + (sums >> 16));
            minus[r] = static_cast<float>(total) * number(x_scales + 4 * r);
        }
    }
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return at + 4 * r; }
};
/// The same of a group that pack_q8 has summed.
template<std::uint32_t kRows>
struct PackedMinusTotals {
    float minus[kRows];
    FOVEA_LANES PackedMinusTotals(const std::byte*, std::size_t n_packed, const std::byte* x_scales,
                                  const std::byte* = nullptr) {
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            const auto eighths = static_cast<float>(word(x_scales + 8 * n_packed + 4 * r));
            minus[r] = eighths * 0.125f * number(x_scales + 4 * r);
        }
    }
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return reinterpret_cast<const std::byte*>(minus + r); }
};
template<Type kType, std::uint32_t kRows, bool = format_of(kType).minima, bool = sums_own(kType)>
struct StartsOf {
    using Found = LateStarts<kType>;
};
template<Type kType, std::uint32_t kRows>
struct StartsOf<kType, kRows, true, true> {
    using Found = MinusTotals<kType, kRows>;
};
template<Type kType, std::uint32_t kRows>
struct StartsOf<kType, kRows, true, false> {
    using Found = PackedMinusTotals<kRows>;
};

/// Whether the products of a group are summed as int16: unsigned quants of four bits.
[[nodiscard]] constexpr bool sums_16(Type type) {
    return format_of(type).bits == 4 && format_of(type).codebook == nullptr;
}

}  // namespace
}  // namespace fovea

#if defined(__aarch64__)
#include "engine/kernels/simd/quants_neon.h"
#elif defined(__wasm_simd128__)
#include "engine/kernels/simd/quants_simd128.h"
#else
#include "engine/kernels/simd/quants_x86.h"
#endif

namespace fovea {
namespace {

#if !defined(__ARM_FEATURE_MATMUL_INT8)
FOVEA_LANES void make_pairs(Bytes (&)[2]) {}
#endif

#if !defined(__aarch64__) || defined(__ARM_FEATURE_DOTPROD)
/// Cell by cell, so that the sums of many rows hide each other's latency.
template<std::uint32_t kRows, class Q, std::uint32_t kPanels, class After>
FOVEA_LANES void add_columns(Dot (&dot)[kRows][kPanels], const Q (&weight)[kPanels], std::size_t group,
                             std::size_t pair, const std::byte* x, std::size_t n_packed, bool last, After&& after) {
    FOVEA_UNROLL for (std::size_t i = 0; i < 2; ++i, x += 4 * n_packed) {
        asm("" : "+r"(x));  // rows are at small offsets from it; the compiler would keep a pointer for each
        Bytes cell[kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) cell[p] = weight[p].cell(group, pair, i);
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
                dot[r][p] = add_products<Q::kType>(dot[r][p], cell[p], x + 4 * r);
            }
            if (i == 1 && last) after(r);
        }
    }
}
#endif

}  // namespace
}  // namespace fovea
