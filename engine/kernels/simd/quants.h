// Integer products of quantized weights, sixteen rows at a time, and the only place that knows their instructions.
//
// Per instruction set, for q8 and q4:
//
//   Products<type>
//     Cell                 four columns of sixteen rows, made ready to multiply
//     load(p, cell)        the two cells of columns 8i to 8i + 7 of a group; p is kPairBytes·i into the group's quants
//     Sum                  sixteen sums of products
//     begin(start)         zero, or the int32 at `start` where weights are multiplied as unsigned numbers
//     add(sum, cell, x)    sum + the products with four int8 at x, exactly
//     end(sum, start)      what the sum of a whole group comes to, as floats
//
// `start` is where a row's dot product of that type starts, see Kernels::pack_q8. Whatever the way, the sum of a group
// is exact: |sum| <= 32·128·127 < 2^24, so that as a float it is exact too.
#pragma once
#include "../kernels.h"
#include "lanes.h"

namespace fovea {
namespace {

/// Four quants, or one int32, as they are.
FOVEA_LANES int word(const std::byte* p) {
    int x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
}

template<Type kType> struct Products;
template<Type kType> inline constexpr std::size_t kPairBytes = kType == Type::q8 ? 128 : 64;

#if defined(__AVX512F__)

/// Tile shapes, by measurement.
struct QuantTiling {
    static constexpr std::uint32_t kRows = 12;     // rows of an operand at once
    static constexpr std::uint32_t kSums = 12;     // rows·panels at once: as many integer sums, as many float sums
    static constexpr std::uint32_t kStreams = 8;   // panels at once with a single row
    static constexpr std::size_t kOperandBytes = 768 << 10;  // rows taken together
};

FOVEA_LANES __m512i line(const std::byte* p) { return _mm512_loadu_si512(p); }
FOVEA_LANES __m512i four(const std::byte* x) { return _mm512_set1_epi32(word(x)); }
FOVEA_LANES F32x16 to_float(__m512i x) { return {_mm512_cvtepi32_ps(x)}; }

/// The low and high nibbles of 64 bytes: the cells of q4.
FOVEA_LANES void nibbles(const std::byte* p, __m512i (&cell)[2]) {
    const __m512i both = line(p), mask = _mm512_set1_epi8(15);
    cell[0] = _mm512_and_si512(both, mask);
    cell[1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
}

/// Sixteen bytes, the low ones of x.
FOVEA_LANES void store_bytes(U32x16 x, std::byte* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v));
}

#if defined(__AVX512VNNI__)

template<Type kType>
struct Products {
    using Cell = __m512i;
    using Sum = __m512i;
    FOVEA_LANES static void load(const std::byte* p, Cell (&cell)[2]) {
        if constexpr (kType == Type::q4) return nibbles(p, cell);
        const __m512i offset = _mm512_set1_epi8(-128);  // vpdpbusd takes these as unsigned: 128 becomes the zero
        cell[0] = _mm512_xor_si512(line(p), offset);
        cell[1] = _mm512_xor_si512(line(p + 64), offset);
    }
    FOVEA_LANES static Sum begin(const std::byte* start) { return four(start); }
    FOVEA_LANES static Sum add(Sum sum, Cell cell, const std::byte* x) {
        return _mm512_dpbusd_epi32(sum, cell, four(x));
    }
    FOVEA_LANES static F32x16 end(Sum sum, const std::byte*) { return to_float(sum); }
};

#else

/// |w|·(±x): a pair's int16 sum is at most 2·128·127 = 32512, so vpmaddubsw never saturates.
template<>
struct Products<Type::q8> {
    struct Cell { __m512i magnitude; __mmask64 negative; };
    using Sum = __m512i;
    FOVEA_LANES static Cell cell_of(__m512i w) { return {_mm512_abs_epi8(w), _mm512_movepi8_mask(w)}; }
    FOVEA_LANES static void load(const std::byte* p, Cell (&cell)[2]) {
        cell[0] = cell_of(line(p));
        cell[1] = cell_of(line(p + 64));
    }
    FOVEA_LANES static Sum begin(const std::byte*) { return _mm512_setzero_si512(); }
    FOVEA_LANES static Sum add(Sum sum, Cell cell, const std::byte* x) {
        const __m512i plain = four(x);
        const __m512i turned = _mm512_mask_sub_epi8(plain, cell.negative, _mm512_setzero_si512(), plain);
        const __m512i pairs = _mm512_maddubs_epi16(cell.magnitude, turned);
        return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    }
    FOVEA_LANES static F32x16 end(Sum sum, const std::byte*) { return to_float(sum); }
};

/// Eight cells of pairs fit int16, 8·2·15·127 = 30480, and widen once.
template<>
struct Products<Type::q4> {
    using Cell = __m512i;
    using Sum = __m512i;
    FOVEA_LANES static void load(const std::byte* p, Cell (&cell)[2]) { nibbles(p, cell); }
    FOVEA_LANES static Sum begin(const std::byte*) { return _mm512_setzero_si512(); }
    FOVEA_LANES static Sum add(Sum sum, Cell cell, const std::byte* x) {
        return _mm512_add_epi16(sum, _mm512_maddubs_epi16(cell, four(x)));
    }
    FOVEA_LANES static F32x16 end(Sum sum, const std::byte* start) {
        return to_float(_mm512_add_epi32(_mm512_madd_epi16(sum, _mm512_set1_epi16(1)), four(start)));
    }
};

#endif
#else

struct QuantTiling {
    static constexpr std::uint32_t kRows = 4;
    static constexpr std::uint32_t kSums = 4;
    static constexpr std::uint32_t kStreams = 4;
    static constexpr std::size_t kOperandBytes = 256 << 10;
};

struct Line { __m256i low, high; };

FOVEA_LANES Line line(const std::byte* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
FOVEA_LANES __m256i four(const std::byte* x) { return _mm256_set1_epi32(word(x)); }
FOVEA_LANES F32x16 to_float(Line x) { return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)}; }

FOVEA_LANES void nibbles(const std::byte* p, Line (&cell)[2]) {
    const Line both = line(p);
    const __m256i mask = _mm256_set1_epi8(15);
    cell[0] = {_mm256_and_si256(both.low, mask), _mm256_and_si256(both.high, mask)};
    cell[1] = {_mm256_and_si256(_mm256_srli_epi16(both.low, 4), mask),
               _mm256_and_si256(_mm256_srli_epi16(both.high, 4), mask)};
}

FOVEA_LANES void store_bytes(U32x16 x, std::byte* p) {
    const __m256i mask = _mm256_set1_epi32(255);
    const __m256i words = _mm256_packus_epi32(_mm256_and_si256(x.low, mask), _mm256_and_si256(x.high, mask));
    const __m256i bytes = _mm256_packus_epi16(words, words);  // in each half lanes 0-3, 8-11 and 4-7, 12-15
    const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
}

#if defined(__AVXVNNI__)

template<Type kType>
struct Products {
    using Cell = Line;
    using Sum = Line;
    FOVEA_LANES static void load(const std::byte* p, Cell (&cell)[2]) {
        if constexpr (kType == Type::q4) return nibbles(p, cell);
        const __m256i offset = _mm256_set1_epi8(-128);
        const Line w = line(p), next = line(p + 64);
        cell[0] = {_mm256_xor_si256(w.low, offset), _mm256_xor_si256(w.high, offset)};
        cell[1] = {_mm256_xor_si256(next.low, offset), _mm256_xor_si256(next.high, offset)};
    }
    FOVEA_LANES static Sum begin(const std::byte* start) { return {four(start), four(start)}; }
    FOVEA_LANES static Sum add(Sum sum, Cell cell, const std::byte* x) {
        return {_mm256_dpbusd_avx_epi32(sum.low, cell.low, four(x)),
                _mm256_dpbusd_avx_epi32(sum.high, cell.high, four(x))};
    }
    FOVEA_LANES static F32x16 end(Sum sum, const std::byte*) { return to_float(sum); }
};

#else

/// |w|·(±x): a pair's int16 sum is at most 2·128·127 = 32512, so vpmaddubsw never saturates.
template<>
struct Products<Type::q8> {
    using Cell = Line;
    using Sum = Line;
    FOVEA_LANES static void load(const std::byte* p, Cell (&cell)[2]) {
        cell[0] = line(p);
        cell[1] = line(p + 64);
    }
    FOVEA_LANES static Sum begin(const std::byte*) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
    FOVEA_LANES static __m256i add(__m256i sum, __m256i w, __m256i x) {
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
        return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    FOVEA_LANES static Sum add(Sum sum, Cell cell, const std::byte* x) {
        return {add(sum.low, cell.low, four(x)), add(sum.high, cell.high, four(x))};
    }
    FOVEA_LANES static F32x16 end(Sum sum, const std::byte*) { return to_float(sum); }
};

/// Eight cells of pairs fit int16, 8·2·15·127 = 30480, and widen once.
template<>
struct Products<Type::q4> {
    using Cell = Line;
    using Sum = Line;
    FOVEA_LANES static void load(const std::byte* p, Cell (&cell)[2]) { nibbles(p, cell); }
    FOVEA_LANES static Sum begin(const std::byte*) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
    FOVEA_LANES static Sum add(Sum sum, Cell cell, const std::byte* x) {
        return {_mm256_add_epi16(sum.low, _mm256_maddubs_epi16(cell.low, four(x))),
                _mm256_add_epi16(sum.high, _mm256_maddubs_epi16(cell.high, four(x)))};
    }
    FOVEA_LANES static F32x16 end(Sum sum, const std::byte* start) {
        const __m256i one = _mm256_set1_epi16(1);
        return to_float({_mm256_add_epi32(_mm256_madd_epi16(sum.low, one), four(start)),
                         _mm256_add_epi32(_mm256_madd_epi16(sum.high, one), four(start))});
    }
};

#endif
#endif

}  // namespace
}  // namespace fovea
