// F32x16 in four q registers of AArch64; see lanes.h for what each operation means. The compilers' own operators on
// vectors do what xsimd's would.
#pragma once
#include <arm_neon.h>

namespace fovea {
namespace {
using Floats4 = float32x4_t;
using Words4 = uint32x4_t;
}  // namespace
}  // namespace fovea

#include "engine/kernels/lanes/four.h"

namespace fovea {
namespace {

/// Tile shapes: 32 registers hold 6 x 1 sums of four registers each, a column and operands.
struct Tiling {
    static constexpr std::uint32_t kRows = 6;                // rows of an operand at once
    static constexpr std::uint32_t kLiveSums = 6;            // rows·panels at once
    static constexpr std::uint32_t kMostPanels = 4;          // panels at once with a single row
    static constexpr std::uint32_t kStreamRows = 0;          // rows up to which panels go one after another: one chain
    static constexpr std::uint32_t kLiveVectors = 7;         // sums and columns that are kept in registers together
    static constexpr std::size_t kOperandBytes = 256 << 10;  // of rows taken together, in the L2
};

FOVEA_LANES Mask16 lanes_between(int begin, int end) {
    return each_lane([=](int lane) {
        const int32x4_t lanes = int32x4_t{0, 1, 2, 3} + vdupq_n_s32(lane);
        return vandq_u32(vcgeq_s32(lanes, vdupq_n_s32(begin)), vcltq_s32(lanes, vdupq_n_s32(end)));
    });
}

FOVEA_LANES F32x16 splat(float x) {
    return each_lane([=](int) { return vdupq_n_f32(x); });
}
FOVEA_LANES F32x16 load(const float* p) {
    return each_lane([=](int lane) { return vld1q_f32(p + lane); });
}
FOVEA_LANES F32x16 load(const Half* p) {
    return each_lane([=](int lane) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p[lane].bits))); });
}
FOVEA_LANES F32x16 load(const Bfloat* p) {
    return each_lane([=](int lane) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(&p[lane].bits), 16)); });
}
FOVEA_LANES F32x16 widen(int8x16_t bytes) {
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
}
FOVEA_LANES F32x16 load(const std::int8_t* p) { return widen(vld1q_s8(p)); }
template<int kFrom>
FOVEA_LANES F32x16 load_nibbles(const std::int8_t* p) {
    return widen(vandq_s8(vshlq_s8(vld1q_s8(p), vdupq_n_s8(-kFrom)), vdupq_n_s8(15)));
}
FOVEA_LANES void store(F32x16 x, float* p) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.q[i]);
}
FOVEA_LANES void store(F32x16 x, Half* p) {
    for (int i = 0; i < 4; ++i) vst1_u16(&p[4 * i].bits, vreinterpret_u16_f16(vcvt_f16_f32(x.q[i])));
}
FOVEA_LANES void keep(F32x16& x) { asm("" : "+w"(x.q[0]), "+w"(x.q[1]), "+w"(x.q[2]), "+w"(x.q[3])); }

FOVEA_LANES F32x16 sqrt(F32x16 a) {
    return each([](auto x) { return vsqrtq_f32(x); }, a);
}
FOVEA_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return each([](auto x, auto y, auto z) { return vfmaq_f32(z, x, y); }, a, b, c);
}
/// The instruction takes x from an s register as it was loaded. Compilers by themselves copy it into four lanes first,
/// which costs a slot of the multipliers.
FOVEA_LANES F32x16 fma(float x, F32x16 b, F32x16 c) {
    for (int i = 0; i < 4; ++i) asm("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(c.q[i]) : "w"(b.q[i]), "w"(x));
    return c;
}
FOVEA_LANES Mask16 operator>(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return vcgtq_f32(x, y); }, a, b);
}
FOVEA_LANES Mask16 operator<(F32x16 a, F32x16 b) { return b > a; }
FOVEA_LANES Mask16 operator==(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return vceqq_f32(x, y); }, a, b);
}
FOVEA_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) {
    return each([](auto mask, auto x, auto y) { return vbslq_f32(mask, x, y); }, m, a, b);
}
FOVEA_LANES F32x16 max(F32x16 a, F32x16 b) { return select(a > b, a, b); }

FOVEA_LANES U32x16 bits(F32x16 a) {
    return each([](auto x) { return vreinterpretq_u32_f32(x); }, a);
}
FOVEA_LANES F32x16 floats(U32x16 a) {
    return each([](auto x) { return vreinterpretq_f32_u32(x); }, a);
}
FOVEA_LANES U32x16 splat_bits(std::uint32_t x) {
    return each_lane([=](int) { return vdupq_n_u32(x); });
}
FOVEA_LANES U32x16 even_signs() {
    return each_lane([](int) { return uint32x4_t{0x80000000u, 0, 0x80000000u, 0}; });
}
FOVEA_LANES Mask16 nonzero(U32x16 a) {
    return each([](auto x) { return vtstq_u32(x, x); }, a);
}

FOVEA_LANES F32x16 swap_neighbours(F32x16 a) {
    return each([](auto x) { return vrev64q_f32(x); }, a);
}
FOVEA_LANES void transpose4(F32x16& a, F32x16& b, F32x16& c, F32x16& d) {
    const auto first = [](auto x, auto y) { return vzip1q_f32(x, y); };
    const auto second = [](auto x, auto y) { return vzip2q_f32(x, y); };
    const F32x16 ac = each(first, a, c), bd = each(first, b, d), ca = each(second, a, c), db = each(second, b, d);
    a = each(first, ac, bd);
    b = each(second, ac, bd);
    c = each(first, ca, db);
    d = each(second, ca, db);
}
FOVEA_LANES void store_quarters(F32x16 x, float* p, std::size_t stride) {
    for (std::size_t i = 0; i < 4; ++i) vst1q_f32(p + i * stride, x.q[i]);
}
FOVEA_LANES float fold_sum(F32x16 a) {
    const float32x4_t four = (a.q[0] + a.q[2]) + (a.q[1] + a.q[3]), two = four + vextq_f32(four, four, 2);
    return two[0] + two[1];
}
FOVEA_LANES float fold_max(F32x16 a) {
    const auto larger = [](float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); };
    const float32x4_t four = larger(larger(a.q[0], a.q[2]), larger(a.q[1], a.q[3]));
    const float32x4_t two = larger(four, vextq_f32(four, four, 2));
    return larger(two, vextq_f32(two, two, 1))[0];
}

}  // namespace
}  // namespace fovea
