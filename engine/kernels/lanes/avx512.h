// F32x16 in one zmm register; see lanes.h for what each operation means. xsimd's fma on AVX-512 rounds twice when
// contraction is off, and its max, rounding and conversions differ between releases: those are intrinsics.
#pragma once
#include <immintrin.h>

#include <xsimd/xsimd.hpp>

namespace fovea {
namespace {

/// Tile shapes, by measurement: 32 registers hold 12 x 2 sums, two columns of weights and the operand.
struct Tiling {
    static constexpr std::uint32_t kRows = 12;               // rows of an operand at once
    static constexpr std::uint32_t kLiveSums = 24;           // rows·panels at once
    static constexpr std::uint32_t kMostPanels = 4;          // panels at once with a single row
    static constexpr std::uint32_t kStreamRows = 0;          // rows up to which panels go one after another: one chain
    static constexpr std::uint32_t kLiveVectors = 32;        // sums and columns that are kept in registers together
    static constexpr std::size_t kOperandBytes = 768 << 10;  // of rows taken together, in the L2
};

struct F32x16 {
    xsimd::batch<float, xsimd::avx512f> v;
};
struct U32x16 {
    xsimd::batch<std::uint32_t, xsimd::avx512f> v;
};
struct Mask16 {
    __mmask16 m;
};

#define FOVEA_LANES [[gnu::always_inline]] inline

FOVEA_LANES Mask16 lanes_between(int begin, int end) {
    const int low = begin < 0 ? 0 : begin > 16 ? 16 : begin, high = end < low ? low : end > 16 ? 16 : end;
    return {static_cast<__mmask16>((1u << high) - (1u << low))};
}

FOVEA_LANES F32x16 splat(float x) { return {_mm512_set1_ps(x)}; }
FOVEA_LANES F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
FOVEA_LANES F32x16 load(const Half* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
FOVEA_LANES F32x16 load(const Bfloat* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
FOVEA_LANES F32x16 widen(__m128i bytes) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))}; }
FOVEA_LANES __m128i sixteen(const std::int8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
FOVEA_LANES F32x16 load(const std::int8_t* p) { return widen(sixteen(p)); }
template<int kFrom>
FOVEA_LANES F32x16 load_nibbles(const std::int8_t* p) {
    return widen(_mm_and_si128(_mm_srli_epi16(sixteen(p), kFrom), _mm_set1_epi8(15)));
}
FOVEA_LANES F32x16 load_part(const float* p, std::size_t n) {
    return {_mm512_maskz_loadu_ps(lanes_between(0, static_cast<int>(n)).m, p)};
}
FOVEA_LANES void store(F32x16 x, float* p) { _mm512_storeu_ps(p, x.v); }
FOVEA_LANES void store(F32x16 x, Half* p) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}
FOVEA_LANES void store_part(F32x16 x, float* p, std::size_t n) {
    _mm512_mask_storeu_ps(p, lanes_between(0, static_cast<int>(n)).m, x.v);
}

FOVEA_LANES void keep(F32x16& x) { asm("" : "+v"(x.v.data)); }

FOVEA_LANES F32x16 operator+(F32x16 a, F32x16 b) { return {a.v + b.v}; }
FOVEA_LANES F32x16 operator-(F32x16 a, F32x16 b) { return {a.v - b.v}; }
FOVEA_LANES F32x16 operator*(F32x16 a, F32x16 b) { return {a.v * b.v}; }
FOVEA_LANES F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
FOVEA_LANES F32x16 sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
FOVEA_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
FOVEA_LANES F32x16 fma(float a, F32x16 b, F32x16 c) { return fma(splat(a), b, c); }
FOVEA_LANES F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
FOVEA_LANES Mask16 operator>(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
FOVEA_LANES Mask16 operator<(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
FOVEA_LANES Mask16 operator==(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
FOVEA_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) { return {_mm512_mask_blend_ps(m.m, b.v, a.v)}; }

FOVEA_LANES U32x16 bits(F32x16 x) { return {_mm512_castps_si512(x.v)}; }
FOVEA_LANES F32x16 floats(U32x16 x) { return {_mm512_castsi512_ps(x.v)}; }
FOVEA_LANES U32x16 splat_bits(std::uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
FOVEA_LANES U32x16 even_signs() { return {_mm512_set1_epi64(0x80000000)}; }
FOVEA_LANES U32x16 operator+(U32x16 a, U32x16 b) { return {a.v + b.v}; }
FOVEA_LANES U32x16 operator&(U32x16 a, U32x16 b) { return {a.v & b.v}; }
FOVEA_LANES U32x16 operator|(U32x16 a, U32x16 b) { return {a.v | b.v}; }
FOVEA_LANES U32x16 operator^(U32x16 a, U32x16 b) { return {a.v ^ b.v}; }
template<int n>
FOVEA_LANES U32x16 shift_left(U32x16 a) {
    return {_mm512_slli_epi32(a.v, n)};
}
FOVEA_LANES Mask16 nonzero(U32x16 a) { return {_mm512_test_epi32_mask(a.v, a.v)}; }

FOVEA_LANES F32x16 swap_neighbours(F32x16 a) { return {_mm512_permute_ps(a.v, 0xb1)}; }
FOVEA_LANES void transpose4(F32x16& a, F32x16& b, F32x16& c, F32x16& d) {
    const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a.v, b.v)),
                  cd = _mm512_castps_pd(_mm512_unpacklo_ps(c.v, d.v));
    const __m512d ef = _mm512_castps_pd(_mm512_unpackhi_ps(a.v, b.v)),
                  gh = _mm512_castps_pd(_mm512_unpackhi_ps(c.v, d.v));
    a = {_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd))};
    b = {_mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd))};
    c = {_mm512_castpd_ps(_mm512_unpacklo_pd(ef, gh))};
    d = {_mm512_castpd_ps(_mm512_unpackhi_pd(ef, gh))};
}
FOVEA_LANES void store_quarters(F32x16 x, float* p, std::size_t stride) {
    _mm_storeu_ps(p, _mm512_castps512_ps128(x.v));
    _mm_storeu_ps(p + stride, _mm512_extractf32x4_ps(x.v, 1));
    _mm_storeu_ps(p + 2 * stride, _mm512_extractf32x4_ps(x.v, 2));
    _mm_storeu_ps(p + 3 * stride, _mm512_extractf32x4_ps(x.v, 3));
}
FOVEA_LANES float fold_sum(F32x16 a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
FOVEA_LANES float fold_max(F32x16 a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace
}  // namespace fovea
