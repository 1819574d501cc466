// F32x16 in two ymm registers; see lanes.h for what each operation means.
#pragma once
#include <immintrin.h>

#include <xsimd/xsimd.hpp>

namespace fovea {
namespace {

/// Tile shapes, by measurement: 16 registers hold 6 x 1 sums of two registers each, a column and the operand.
struct Tiling {
    static constexpr std::uint32_t kRows = 6;                // rows of an operand at once
    static constexpr std::uint32_t kLiveSums = 6;            // rows·panels at once
    static constexpr std::uint32_t kMostPanels = 4;          // panels at once with a single row
    static constexpr std::uint32_t kStreamRows = 0;          // rows up to which panels go one after another: one chain
    static constexpr std::uint32_t kLiveVectors = 7;         // sums and columns that are kept in registers together
    static constexpr std::size_t kOperandBytes = 768 << 10;  // of rows taken together, in the L2
};

using Floats8 = xsimd::batch<float, xsimd::avx2>;
using Words8 = xsimd::batch<std::uint32_t, xsimd::avx2>;

struct F32x16 {
    Floats8 low, high;
};
struct U32x16 {
    Words8 low, high;
};
struct Mask16 {
    __m256 low, high;
};

#define FOVEA_LANES [[gnu::always_inline]] inline

/// Eight lanes' masks, those of lanes [first, first + 8) within [begin, end).
FOVEA_LANES __m256i eight_between(int first, int begin, int end) {
    const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
}
FOVEA_LANES Mask16 lanes_between(int begin, int end) {
    return {_mm256_castsi256_ps(eight_between(0, begin, end)), _mm256_castsi256_ps(eight_between(8, begin, end))};
}

FOVEA_LANES F32x16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
FOVEA_LANES F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
FOVEA_LANES F32x16 load(const Half* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
FOVEA_LANES __m256 widen(const Bfloat* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
FOVEA_LANES F32x16 load(const Bfloat* p) { return {widen(p), widen(p + 8)}; }
FOVEA_LANES __m128i eight(const std::int8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
FOVEA_LANES __m256 widen(__m128i bytes) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)); }
FOVEA_LANES F32x16 load(const std::int8_t* p) { return {widen(eight(p)), widen(eight(p + 8))}; }
template<int kFrom>
FOVEA_LANES F32x16 load_nibbles(const std::int8_t* p) {
    const auto half = [](__m128i x) { return widen(_mm_and_si128(_mm_srli_epi16(x, kFrom), _mm_set1_epi8(15))); };
    return {half(eight(p)), half(eight(p + 8))};
}
FOVEA_LANES F32x16 load_part(const float* p, std::size_t n) {
    const int end = static_cast<int>(n);
    return {_mm256_maskload_ps(p, eight_between(0, 0, end)), _mm256_maskload_ps(p + 8, eight_between(8, 0, end))};
}
FOVEA_LANES void store(F32x16 x, float* p) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
}
FOVEA_LANES void store(F32x16 x, Half* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.high, _MM_FROUND_TO_NEAREST_INT));
}
FOVEA_LANES void store_part(F32x16 x, float* p, std::size_t n) {
    const int end = static_cast<int>(n);
    _mm256_maskstore_ps(p, eight_between(0, 0, end), x.low);
    _mm256_maskstore_ps(p + 8, eight_between(8, 0, end), x.high);
}

FOVEA_LANES void keep(F32x16& x) { asm("" : "+x"(x.low.data), "+x"(x.high.data)); }

FOVEA_LANES F32x16 operator+(F32x16 a, F32x16 b) { return {a.low + b.low, a.high + b.high}; }
FOVEA_LANES F32x16 operator-(F32x16 a, F32x16 b) { return {a.low - b.low, a.high - b.high}; }
FOVEA_LANES F32x16 operator*(F32x16 a, F32x16 b) { return {a.low * b.low, a.high * b.high}; }
FOVEA_LANES F32x16 operator/(F32x16 a, F32x16 b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
FOVEA_LANES F32x16 sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
FOVEA_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
FOVEA_LANES F32x16 fma(float a, F32x16 b, F32x16 c) { return fma(splat(a), b, c); }
FOVEA_LANES F32x16 max(F32x16 a, F32x16 b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
FOVEA_LANES Mask16 operator>(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ)};
}
FOVEA_LANES Mask16 operator<(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
FOVEA_LANES Mask16 operator==(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
}
FOVEA_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) {
    return {_mm256_blendv_ps(b.low, a.low, m.low), _mm256_blendv_ps(b.high, a.high, m.high)};
}

FOVEA_LANES U32x16 bits(F32x16 x) { return {_mm256_castps_si256(x.low), _mm256_castps_si256(x.high)}; }
FOVEA_LANES F32x16 floats(U32x16 x) { return {_mm256_castsi256_ps(x.low), _mm256_castsi256_ps(x.high)}; }
FOVEA_LANES U32x16 splat_bits(std::uint32_t x) {
    return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))};
}
FOVEA_LANES U32x16 even_signs() { return {_mm256_set1_epi64x(0x80000000), _mm256_set1_epi64x(0x80000000)}; }
FOVEA_LANES U32x16 operator+(U32x16 a, U32x16 b) { return {a.low + b.low, a.high + b.high}; }
FOVEA_LANES U32x16 operator&(U32x16 a, U32x16 b) { return {a.low & b.low, a.high & b.high}; }
FOVEA_LANES U32x16 operator|(U32x16 a, U32x16 b) { return {a.low | b.low, a.high | b.high}; }
FOVEA_LANES U32x16 operator^(U32x16 a, U32x16 b) { return {a.low ^ b.low, a.high ^ b.high}; }
template<int n>
FOVEA_LANES U32x16 shift_left(U32x16 a) {
    return {_mm256_slli_epi32(a.low, n), _mm256_slli_epi32(a.high, n)};
}
FOVEA_LANES Mask16 nonzero(U32x16 a) {
    const __m256i zero = _mm256_setzero_si256(), all = _mm256_set1_epi32(-1);
    return {_mm256_castsi256_ps(_mm256_xor_si256(_mm256_cmpeq_epi32(a.low, zero), all)),
            _mm256_castsi256_ps(_mm256_xor_si256(_mm256_cmpeq_epi32(a.high, zero), all))};
}

FOVEA_LANES F32x16 swap_neighbours(F32x16 a) {
    return {_mm256_permute_ps(a.low, 0xb1), _mm256_permute_ps(a.high, 0xb1)};
}
FOVEA_LANES void transpose4(Floats8& a, Floats8& b, Floats8& c, Floats8& d) {
    const __m256d ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b)), cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    const __m256d ef = _mm256_castps_pd(_mm256_unpackhi_ps(a, b)), gh = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    a = _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd));
    b = _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd));
    c = _mm256_castpd_ps(_mm256_unpacklo_pd(ef, gh));
    d = _mm256_castpd_ps(_mm256_unpackhi_pd(ef, gh));
}
FOVEA_LANES void transpose4(F32x16& a, F32x16& b, F32x16& c, F32x16& d) {
    transpose4(a.low, b.low, c.low, d.low);
    transpose4(a.high, b.high, c.high, d.high);
}
FOVEA_LANES void store_quarters(F32x16 x, float* p, std::size_t stride) {
    _mm_storeu_ps(p, _mm256_castps256_ps128(x.low));
    _mm_storeu_ps(p + stride, _mm256_extractf128_ps(x.low, 1));
    _mm_storeu_ps(p + 2 * stride, _mm256_castps256_ps128(x.high));
    _mm_storeu_ps(p + 3 * stride, _mm256_extractf128_ps(x.high, 1));
}
FOVEA_LANES float fold_sum(F32x16 a) {
    const __m256 eight = a.low + a.high;
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
FOVEA_LANES float fold_max(F32x16 a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace
}  // namespace fovea
