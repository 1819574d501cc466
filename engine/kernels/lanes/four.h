// Sixteen lanes in four registers of a compiler's own vectors: what neon.h and simd128.h have in common. A file that includes it
// has said what Floats4 and Words4 are; the compilers' own operators on them do what lanes.h says.
#pragma once

namespace fovea {
namespace {

#define FOVEA_LANES [[gnu::always_inline]] inline

template<class Q>
struct Four {
    Q q[4];
};
using F32x16 = Four<Floats4>;
using U32x16 = Four<Words4>;
using Mask16 = Four<Words4>;

/// f of the first registers of all x, of the second, the third, the fourth.
template<class F, class... Q>
FOVEA_LANES auto each(F f, Four<Q>... x) -> Four<decltype(f(x.q[0]...))> {
    return {f(x.q[0]...), f(x.q[1]...), f(x.q[2]...), f(x.q[3]...)};
}
/// f(0), f(4), f(8), f(12): of each register's first lane.
template<class F>
FOVEA_LANES auto each_lane(F f) -> Four<decltype(f(0))> {
    return {f(0), f(4), f(8), f(12)};
}

template<class Q>
FOVEA_LANES Four<Q> operator+(Four<Q> a, Four<Q> b) {
    return each([](auto x, auto y) { return x + y; }, a, b);
}
FOVEA_LANES F32x16 operator-(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return x - y; }, a, b);
}
FOVEA_LANES F32x16 operator*(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return x * y; }, a, b);
}
FOVEA_LANES F32x16 operator/(F32x16 a, F32x16 b) {
    return each([](auto x, auto y) { return x / y; }, a, b);
}
FOVEA_LANES U32x16 operator&(U32x16 a, U32x16 b) {
    return each([](auto x, auto y) { return x & y; }, a, b);
}
FOVEA_LANES U32x16 operator|(U32x16 a, U32x16 b) {
    return each([](auto x, auto y) { return x | y; }, a, b);
}
FOVEA_LANES U32x16 operator^(U32x16 a, U32x16 b) {
    return each([](auto x, auto y) { return x ^ y; }, a, b);
}
template<int n>
FOVEA_LANES U32x16 shift_left(U32x16 a) {
    return each([](auto x) { return x << n; }, a);
}

FOVEA_LANES F32x16 load(const float* p);
FOVEA_LANES void store(F32x16 x, float* p);
FOVEA_LANES F32x16 load_part(const float* p, std::size_t n) {
    float part[16] = {};
    __builtin_memcpy(part, p, n * sizeof *p);
    return load(part);
}
FOVEA_LANES void store_part(F32x16 x, float* p, std::size_t n) {
    float part[16];
    store(x, part);
    __builtin_memcpy(p, part, n * sizeof *p);
}

}  // namespace
}  // namespace fovea
