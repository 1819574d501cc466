// Integer products with AVX2 and AVX-512, and with their VNNI; see quants.h for what each operation means. Further
//   Bytes                  64 bytes are also sixteen int32 sums: Dot
//   four(x)                the four bytes at x, sixteen times
//   flip(w)                bit 7 of each flipped: as an unsigned number, w + 128
//   table_of(sixteen)      a table for lookup(w, table), which takes one in vectors too
//   words_up_to(p, n)      n <= 16 words at p, zeros after; reads nothing beyond
//   dot4(sum, u, x)        sum + the products of unsigned u with signed x by fours, exactly (VNNI)
//   pairs(u, x)            the same products by twos, as int16, saturated
//   widened(p)             sums of int16 by twos
//   add16, add32(a, b)     by int16, int32
//   eighth(sum)            by int32, of multiples of 8
//   magnitudes(w), apply_sign(x, w)   |w|; x·sign(w), if w is not 0
//   to_float(sum)          sixteen int32 as floats
#pragma once
#include "engine/kernels/lanes/lanes.h"

namespace fovea {
namespace {

#if defined(__AVX512F__)

/// Tile shapes, by measurement.
struct QuantTiling {
    static constexpr std::uint32_t kRows = 12;       // rows of an operand at once
    static constexpr std::uint32_t kLiveSums = 24;   // rows·panels at once: as many integer sums are in registers
    static constexpr std::uint32_t kMostPanels = 8;  // panels at once with a single row
    static constexpr std::uint32_t kStreamRows = 2;  // rows up to which long panels are read one after another
    static constexpr std::size_t kOperandBytes = 768 << 10;  // of rows taken together
    static constexpr bool kPairs = false;
};

using Bytes = __m512i;
FOVEA_LANES Bytes bytes(const std::byte* p) { return _mm512_loadu_si512(p); }
FOVEA_LANES void store(Bytes x, std::byte* p) { _mm512_store_si512(p, x); }
FOVEA_LANES Bytes four(const std::byte* x) { return _mm512_set1_epi32(word(x)); }
FOVEA_LANES Bytes flip(Bytes w) { return _mm512_xor_si512(w, _mm512_set1_epi8(-128)); }
FOVEA_LANES Bytes low_nibbles(Bytes w) { return _mm512_and_si512(w, _mm512_set1_epi8(15)); }
FOVEA_LANES Bytes high_nibbles(Bytes w) { return low_nibbles(_mm512_srli_epi16(w, 4)); }
FOVEA_LANES Bytes join_nibbles(Bytes w, bool high, Bytes more) {
    const Bytes nibbles = high ? _mm512_srli_epi16(w, 4) : w;
    return _mm512_ternarylogic_epi32(nibbles, _mm512_set1_epi8(15), more, 0xea);  // (nibbles & 15) | more
}
FOVEA_LANES Bytes moved_bits(Bytes w, int from, int to, int mask) {
    const Bytes moved = from < to ? _mm512_slli_epi16(w, static_cast<unsigned>(to - from))
                                  : _mm512_srli_epi16(w, static_cast<unsigned>(from - to));
    return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(mask)));
}
FOVEA_LANES Bytes table_of(const std::int8_t* sixteen) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen)));
}
FOVEA_LANES Bytes lookup(Bytes w, Bytes table) { return _mm512_shuffle_epi8(table, w); }
FOVEA_LANES Bytes less(Bytes w, int n) { return _mm512_sub_epi8(w, _mm512_set1_epi8(static_cast<char>(n))); }
FOVEA_LANES Bytes words_up_to(const std::byte* p, std::uint32_t n) {
    return _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << n) - 1), p);
}
FOVEA_LANES Bytes pairs(Bytes u, Bytes x) { return _mm512_maddubs_epi16(u, x); }
FOVEA_LANES Bytes widened(Bytes p) { return _mm512_madd_epi16(p, _mm512_set1_epi16(1)); }
FOVEA_LANES Bytes add16(Bytes a, Bytes b) { return _mm512_add_epi16(a, b); }
FOVEA_LANES Bytes add32(Bytes a, Bytes b) { return _mm512_add_epi32(a, b); }
FOVEA_LANES Bytes magnitudes(Bytes w) { return _mm512_abs_epi8(w); }
FOVEA_LANES Bytes apply_sign(Bytes x, Bytes w) {
    return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
}
FOVEA_LANES F32x16 to_float(Bytes sum) { return {_mm512_cvtepi32_ps(sum)}; }
FOVEA_LANES void store_bytes(U32x16 x, std::byte* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v));
}
FOVEA_LANES Bytes four_of(int n) { return _mm512_set1_epi8(static_cast<char>(n)); }
FOVEA_LANES Bytes negative(Bytes sum) { return _mm512_sub_epi32(_mm512_setzero_si512(), sum); }
FOVEA_LANES Bytes eighth(Bytes sum) { return _mm512_srai_epi32(sum, 3); }
FOVEA_LANES void keep(Bytes& sums) { asm("" : "+v"(sums)); }
#if defined(__AVX512VNNI__)
FOVEA_LANES Bytes dot4(Bytes sum, Bytes u, Bytes x) { return _mm512_dpbusd_epi32(sum, u, x); }
#endif

#else

struct QuantTiling {
    static constexpr std::uint32_t kRows = 6;
    static constexpr std::uint32_t kLiveSums = 6;
    static constexpr std::uint32_t kMostPanels = 4;
    static constexpr std::uint32_t kStreamRows = 2;
    static constexpr std::size_t kOperandBytes = 256 << 10;
    static constexpr bool kPairs = false;
};

struct Bytes {
    __m256i low, high;
};
FOVEA_LANES __m256i half(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
FOVEA_LANES Bytes bytes(const std::byte* p) { return {half(p), half(p + 32)}; }
FOVEA_LANES void store(Bytes x, std::byte* p) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(p), x.low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(p + 32), x.high);
}
FOVEA_LANES Bytes all(__m256i x) { return {x, x}; }
FOVEA_LANES Bytes four(const std::byte* x) { return all(_mm256_set1_epi32(word(x))); }
FOVEA_LANES Bytes flip(Bytes w) {
    const __m256i sign = _mm256_set1_epi8(-128);
    return {_mm256_xor_si256(w.low, sign), _mm256_xor_si256(w.high, sign)};
}
FOVEA_LANES Bytes low_nibbles(Bytes w) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(w.low, mask), _mm256_and_si256(w.high, mask)};
}
FOVEA_LANES Bytes high_nibbles(Bytes w) {
    return low_nibbles({_mm256_srli_epi16(w.low, 4), _mm256_srli_epi16(w.high, 4)});
}
FOVEA_LANES Bytes operator|(Bytes a, Bytes b) {
    return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
FOVEA_LANES Bytes join_nibbles(Bytes w, bool high, Bytes more) {
    return (high ? high_nibbles(w) : low_nibbles(w)) | more;
}
FOVEA_LANES __m256i moved_bits(__m256i w, int from, int to, int mask) {
    const __m256i moved = from < to ? _mm256_slli_epi16(w, to - from) : _mm256_srli_epi16(w, from - to);
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask)));
}
FOVEA_LANES Bytes moved_bits(Bytes w, int from, int to, int mask) {
    return {moved_bits(w.low, from, to, mask), moved_bits(w.high, from, to, mask)};
}
FOVEA_LANES Bytes table_of(const std::int8_t* sixteen) {
    return all(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen))));
}
FOVEA_LANES Bytes lookup(Bytes w, Bytes table) {
    return {_mm256_shuffle_epi8(table.low, w.low), _mm256_shuffle_epi8(table.high, w.high)};
}
FOVEA_LANES Bytes less(Bytes w, int n) {
    const __m256i all_n = _mm256_set1_epi8(static_cast<char>(n));
    return {_mm256_sub_epi8(w.low, all_n), _mm256_sub_epi8(w.high, all_n)};
}
FOVEA_LANES Bytes words_up_to(const std::byte* p, std::uint32_t n) {
    const int* words = reinterpret_cast<const int*>(p);
    const int end = static_cast<int>(n);
    return {_mm256_maskload_epi32(words, eight_between(0, 0, end)),
            _mm256_maskload_epi32(words + 8, eight_between(8, 0, end))};
}
FOVEA_LANES Bytes pairs(Bytes u, Bytes x) {
    return {_mm256_maddubs_epi16(u.low, x.low), _mm256_maddubs_epi16(u.high, x.high)};
}
FOVEA_LANES Bytes widened(Bytes p) {
    const __m256i one = _mm256_set1_epi16(1);
    return {_mm256_madd_epi16(p.low, one), _mm256_madd_epi16(p.high, one)};
}
FOVEA_LANES Bytes add16(Bytes a, Bytes b) { return {_mm256_add_epi16(a.low, b.low), _mm256_add_epi16(a.high, b.high)}; }
FOVEA_LANES Bytes add32(Bytes a, Bytes b) { return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)}; }
FOVEA_LANES Bytes magnitudes(Bytes w) { return {_mm256_abs_epi8(w.low), _mm256_abs_epi8(w.high)}; }
FOVEA_LANES Bytes apply_sign(Bytes x, Bytes w) {
    return {_mm256_sign_epi8(x.low, w.low), _mm256_sign_epi8(x.high, w.high)};
}
FOVEA_LANES F32x16 to_float(Bytes sum) { return {_mm256_cvtepi32_ps(sum.low), _mm256_cvtepi32_ps(sum.high)}; }
FOVEA_LANES void store_bytes(U32x16 x, std::byte* p) {
    const __m256i mask = _mm256_set1_epi32(255);
    const __m256i words = _mm256_packus_epi32(_mm256_and_si256(x.low, mask), _mm256_and_si256(x.high, mask));
    const __m256i bytes = _mm256_packus_epi16(words, words);  // in each half lanes 0-3, 8-11 and 4-7, 12-15
    const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
}
FOVEA_LANES Bytes four_of(int n) { return all(_mm256_set1_epi8(static_cast<char>(n))); }
FOVEA_LANES Bytes negative(Bytes sum) {
    const __m256i zero = _mm256_setzero_si256();
    return {_mm256_sub_epi32(zero, sum.low), _mm256_sub_epi32(zero, sum.high)};
}
FOVEA_LANES Bytes eighth(Bytes sum) { return {_mm256_srai_epi32(sum.low, 3), _mm256_srai_epi32(sum.high, 3)}; }
FOVEA_LANES void keep(Bytes& sums) { asm("" : "+x"(sums.low), "+x"(sums.high)); }
#if defined(__AVXVNNI__)
FOVEA_LANES Bytes dot4(Bytes sum, Bytes u, Bytes x) {
    return {_mm256_dpbusd_avx_epi32(sum.low, u.low, x.low), _mm256_dpbusd_avx_epi32(sum.high, u.high, x.high)};
}
#endif

#endif

using Dot = Bytes;
FOVEA_LANES Bytes lookup(Bytes w, const std::int8_t* table) { return lookup(w, table_of(table)); }

/// −zero·Σ of −8·Σ, which pack_q8 has; of types without a zero what is given.
template<Type kType>
FOVEA_LANES Bytes packed_zero(Bytes eight) {
    constexpr int kZero = format_of(kType).zero;
    static_assert(sums_own(kType) || kZero == 0 || kZero == 1 || kZero == 8 || kZero == 16);
    if constexpr (kZero == 1) return eighth(eight);
    return kZero == 16 ? add32(eight, eight) : eight;
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)

inline constexpr bool kSameProducts = true;
/// Signed weights are multiplied as unsigned ones, w + 128.
FOVEA_LANES Bytes signed_cell(Bytes w) { return flip(w); }
FOVEA_LANES Bytes codebook_cell(Bytes w, const std::int8_t* codebook) { return lookup(w, flip(table_of(codebook))); }
template<int>
FOVEA_LANES Bytes centred_cell(Bytes w) {
    return w;
}
template<Type kType, std::uint32_t kRows>
struct Starts {
    const std::byte* first;
    FOVEA_LANES Starts(const std::byte*, std::size_t n_packed, const std::byte* x_scales, const std::byte* = nullptr)
        : first(x_scales + (format_of(kType).zero ? 8 : 4) * n_packed) {}
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return first + 4 * r; }
};
/// If no one packed the sums of quants: −zero·Σ, with minima −Σ·scale as floats, all rows side by side.
template<Type kType, std::uint32_t kRows>
requires(sums_own(kType)) struct Starts<kType, kRows> {
    static constexpr std::uint32_t kOfUnit = kSuperblock / format_of(kType).scale_columns;  // groups with starts
    alignas(64) std::byte minus[64];
    const std::byte* at;
    FOVEA_LANES Starts(const std::byte* x, std::size_t n_packed, const std::byte* x_scales,
                       const std::byte* known = nullptr)
        : at(known) {
        if (known) return;
        at = minus;
        constexpr QuantFormat kFormat = format_of(kType);
        const Bytes zero = four_of(kFormat.minima ? 1 : kFormat.zero);
        Bytes sum{};
        FOVEA_UNROLL for (std::size_t cell = 0; cell < kFormat.scale_columns / 4; ++cell) {
            sum = dot4(sum, zero, words_up_to(x + 4 * cell * n_packed, kRows));
        }
        sum = negative(sum);
        if constexpr (kFormat.minima)
            store(to_float(sum) * load_part(reinterpret_cast<const float*>(x_scales), kRows),
                  reinterpret_cast<float*>(minus));
        else
            store(sum, minus);
    }
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return at + 4 * r; }
};
/// PackedMinusTotals, rows side by side. For one or two rows that is slower: each total goes by way of memory.
template<Type kType, std::uint32_t kRows>
requires(format_of(kType).minima && !sums_own(kType) && kRows > QuantTiling::kStreamRows) struct Starts<kType, kRows> {
    alignas(64) std::byte minus[64];
    FOVEA_LANES Starts(const std::byte*, std::size_t n_packed, const std::byte* x_scales, const std::byte* = nullptr) {
        const F32x16 sums = to_float(words_up_to(x_scales + 8 * n_packed, kRows)) * splat(0.125f);
        store(sums * load_part(reinterpret_cast<const float*>(x_scales), kRows), reinterpret_cast<float*>(minus));
    }
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return minus + 4 * r; }
};
template<Type kType, std::uint32_t kRows>
requires(format_of(kType).minima && !sums_own(kType) && kRows <= QuantTiling::kStreamRows) struct Starts<kType, kRows>
    : PackedMinusTotals<kRows> {
    using PackedMinusTotals<kRows>::PackedMinusTotals;
};
template<Type kType>
FOVEA_LANES Bytes begin_sum(const std::byte* start) {
    if constexpr (format_of(kType).minima) return Bytes{};
    return sums_own(kType) ? four(start) : packed_zero<kType>(four(start));
}
template<Type>
FOVEA_LANES Bytes add_products(Bytes sum, Bytes cell, const std::byte* x) {
    return dot4(sum, cell, four(x));
}
template<Type>
FOVEA_LANES F32x16 end_sum(Bytes sum, const std::byte*) {
    return to_float(sum);
}

#else

inline constexpr bool kSameProducts = false;
FOVEA_LANES Bytes signed_cell(Bytes w) { return w; }
FOVEA_LANES Bytes codebook_cell(Bytes w, const std::int8_t* codebook) { return lookup(w, codebook); }
template<int>
FOVEA_LANES Bytes centred_cell(Bytes w) {
    return w;
}

/// Whether quants are multiplied unsigned, as they are stored: all but those of eight bits and of codebooks.
[[nodiscard]] constexpr bool is_unsigned(Type type) {
    return format_of(type).bits < 8 && format_of(type).codebook == nullptr;
}
/// The most that pairs of unsigned quants make, and whether a group's cells fit int16 together: they are widened once then.
[[nodiscard]] constexpr int most_of_pairs(Type type) { return 2 * ((1 << format_of(type).bits) - 1) * 127; }
[[nodiscard]] constexpr bool sums_pairs(Type type) {
    return is_unsigned(type) && most_of_pairs(type) * (format_of(type).scale_columns / 4) <= 32767;
}

/// −zero·Σ that pack_q8 has.
template<Type kType>
struct PackedZeros {
    const std::byte* first;
    FOVEA_LANES PackedZeros(const std::byte*, std::size_t n_packed, const std::byte* x_scales,
                            const std::byte* = nullptr)
        : first(x_scales + 8 * n_packed) {}
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return first + 4 * r; }
};
/// −zero·Σ of half a group, all rows side by side. By pairs it is at most 2·32·127, four of which fit int16.
template<Type kType, std::uint32_t kRows>
struct OwnZeros {
    static constexpr std::uint32_t kOfUnit = kSuperblock / format_of(kType).scale_columns;  // groups with starts
    static_assert(format_of(kType).zero <= 32 && format_of(kType).scale_columns == 16);
    alignas(64) std::byte minus[64];
    const std::byte* at;
    FOVEA_LANES OwnZeros(const std::byte* x, std::size_t n_packed, const std::byte*, const std::byte* known = nullptr)
        : at(known) {
        if (known) return;
        at = minus;
        Bytes sum{};
        FOVEA_UNROLL for (std::size_t cell = 0; cell < 4; ++cell) {
            sum = add16(sum, pairs(four_of(format_of(kType).zero), words_up_to(x + 4 * cell * n_packed, kRows)));
        }
        store(negative(widened(sum)), minus);
    }
    FOVEA_LANES const std::byte* of(std::uint32_t r) const { return at + 4 * r; }
};
template<Type kType, std::uint32_t kRows>
struct X86Starts : StartsOf<kType, kRows> {};
template<Type kType, std::uint32_t kRows>
requires(is_unsigned(kType) && format_of(kType).zero != 0) struct X86Starts<kType, kRows> {
    using Found = std::conditional_t<sums_own(kType), OwnZeros<kType, kRows>, PackedZeros<kType> >;
};
template<Type kType, std::uint32_t kRows>
using Starts = typename X86Starts<kType, kRows>::Found;
template<Type>
FOVEA_LANES Bytes begin_sum(const std::byte*) {
    return Bytes{};
}

/// Signed: |w|·(±x) by pairs is at most 2·128·127 = 32512, so nothing saturates; unsigned of six bits, 2·63·127, as well.
template<Type kType>
FOVEA_LANES Bytes add_products(Bytes sum, Bytes cell, const std::byte* x) {
    if constexpr (sums_pairs(kType)) return add16(sum, pairs(cell, four(x)));
    if constexpr (is_unsigned(kType)) return add32(sum, widened(pairs(cell, four(x))));
    return add32(sum, widened(pairs(magnitudes(cell), apply_sign(four(x), cell))));
}
template<Type kType>
FOVEA_LANES F32x16 end_sum(Bytes sum, const std::byte* start) {
    if constexpr (sums_pairs(kType)) sum = widened(sum);
    if constexpr (is_unsigned(kType) && format_of(kType).zero != 0)
        sum = add32(sum, sums_own(kType) ? four(start) : packed_zero<kType>(four(start)));
    return to_float(sum);
}

#endif

}  // namespace
}  // namespace fovea
