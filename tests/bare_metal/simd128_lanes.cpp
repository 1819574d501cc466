// The lanes of SIMD128 beside scalar code, where models seldom come: sums in the middle between two floats, subnormal numbers,
// infinities, every half. Prints what differs, and its status is then 1.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "engine/kernels/lanes/math.h"
#include "engine/kernels/scalar/math.h"
#include "engine/kernels/scalar/storage.h"

namespace fovea {
namespace {

int failures = 0;

/// A NaN has no fixed bits.
void expect(const char* what, float wanted, float got, float a, float b, float c) {
    if (bits(wanted) == bits(got) || (wanted != wanted && got != got)) return;
    if (++failures < 10) std::printf("%s of %a, %a, %a: expected %a, got %a\n", what, a, b, c, wanted, got);
}

/// SplitMix64 (Steele et al. 2014).
std::uint64_t next(std::uint64_t& state) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct Operands {
    float a[kLanes], b[kLanes], c[kLanes];
};

void check(const Operands& x) {
    float sum[kLanes], most[kLanes], root[kLanes];
    store(fma(load(x.a), load(x.b), load(x.c)), sum);
    store(max(load(x.a), load(x.b)), most);
    store(sqrt(load(x.a)), root);
    for (std::uint32_t i = 0; i < kLanes; ++i) {
        expect("fma", fma_in_double(x.a[i], x.b[i], x.c[i]), sum[i], x.a[i], x.b[i], x.c[i]);
        expect("max", max_of(x.a[i], x.b[i]), most[i], x.a[i], x.b[i], 0);
        expect("sqrt", __builtin_sqrtf(x.a[i]), root[i], x.a[i], 0, 0);
    }
}

float scaled(float y, int by) { return static_cast<float>(static_cast<double>(y) * __builtin_scalbn(1.0, by)); }

/// Lanes whose sums are in the middle between two floats, or so near it that a double is not between: a·b is half of c's last bit
/// times 1, or (1 + p)·(1 − p), or more. In some lanes any bits at all.
void check_sums() {
    std::uint64_t state = 1;
    for (int round = 0; round < 200000; ++round) {
        Operands x;
        for (std::uint32_t i = 0; i < kLanes; ++i) {
            const std::uint64_t r = next(state), s = next(state);
            x.a[i] = float_of(static_cast<std::uint32_t>(r));
            x.b[i] = float_of(static_cast<std::uint32_t>(r >> 32));
            x.c[i] = float_of(static_cast<std::uint32_t>(s));
            if (s >> 60 == 0) continue;  // any floats: infinities and NaN among them
            const int exponent = static_cast<int>(s >> 52 & 0xff) % 200 - 120;  // some sums are subnormal
            const float part = scaled(1.0f, -static_cast<int>(s >> 40 & 0xfff) % 25);
            x.c[i] = scaled(1.0f + static_cast<float>(r & 0x7fffff) * 0x1p-23f, exponent);
            x.a[i] = scaled(r >> 40 & 1 ? 1.0f + part : 1.0f, exponent - 24);
            x.b[i] = (r >> 41 & 1 ? -1.0f : 1.0f) * (r >> 42 & 1 ? 1.0f - part : 1.0f);
            if ((r >> 43 & 7) == 0) x.a[i] = 0.0f;
        }
        check(x);
    }
}

void check_halves() {
    std::uint64_t state = 2;
    for (std::uint32_t first = 0; first < 0x10000; first += kLanes) {
        Half halves[kLanes];
        float got[kLanes];
        for (std::uint32_t i = 0; i < kLanes; ++i) halves[i].bits = static_cast<std::uint16_t>(first + i);
        store(load(halves), got);
        for (std::uint32_t i = 0; i < kLanes; ++i)
            expect("half", F16::load(halves[i].bits), got[i], float(first + i), 0, 0);
    }
    for (int round = 0; round < 1000000; ++round) {
        float x[kLanes];
        Half got[kLanes];
        for (float& y : x) {
            const std::uint64_t r = next(state);
            y = float_of(static_cast<std::uint32_t>(r));
            if (r >> 40 & 3)
                y = float_of((bits(y) & 0x80ffffffu) + (r >> 41 & 1 ? 0x33000000u : 0x46000000u));  // about the ends
            if (!(magnitude(y) <= 65504.0f) && y == y) y = with_sign_of(float_of(0x7f800000u), y);
        }
        store(canonical(load(x)), got);
        for (std::uint32_t i = 0; i < kLanes; ++i)
            expect("to half", F16::load(to_f16(x[i])), F16::load(got[i].bits), x[i], 0, 0);
    }
}

}  // namespace
}  // namespace fovea

int main() {
    fovea::check_sums();
    fovea::check_halves();
    std::printf("%d lanes differ\n", fovea::failures);
    return fovea::failures != 0;
}
