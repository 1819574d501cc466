// exp, tanh, erf, sine, cosine and the activations: the same bits on every instruction set over a sample of all floats,
// and errors no larger than docs/numerics.md states. Also the emulated fused multiply-add that they may rest on.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "engine/format/half.h"
#include "engine/kernels/scalar/math.h"
#include "tests/support/kernel_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// The distance from x to the next float, were there enough exponents.
double ulp(double x) {
    const int exponent = x == 0.0 ? -126 : std::max(std::ilogb(x), -126);
    return std::ldexp(1.0, exponent - 23);
}

double exact(Unary f, double x) {
    switch (f) {
        case Unary::exp: return std::exp(x);
        case Unary::tanh: return std::tanh(x);
        case Unary::erf: return std::erf(x);
        case Unary::sin: return std::sin(x);
        case Unary::cos: return std::cos(x);
    }
    switch (activation_of(f)) {
        case Activation::gelu: return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
        case Activation::gelu_tanh: return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        case Activation::silu: return x / (1 + std::exp(-x));
        case Activation::tanh: return std::tanh(x);
        case Activation::silu_clamped: return std::min(x, 7.0) / (1 + std::exp(-1.702 * std::min(x, 7.0)));
        case Activation::relu2: return std::max(x, 0.0) * std::max(x, 0.0);
        case Activation::quick_gelu: return x / (1 + std::exp(-1.702 * x));
        case Activation::sigmoid: return 1 / (1 + std::exp(-x));
        case Activation::softplus: return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
        case Activation::none:
        case Activation::relu: break;
    }
    return 0;
}

/// The largest error docs/numerics.md allows for f at x, whose exact result is y; infinite where it promises nothing.
double allowed(Unary f, double x, double y) {
    const double size = std::abs(x);
    switch (f) {
        case Unary::exp: return x < -80 ? 0x1p-115 : 0.9 * ulp(y);
        case Unary::tanh: return 1.4 * ulp(y);
        case Unary::erf: return 1.1 * ulp(y);
        case Unary::sin:
        case Unary::cos: return size <= 0x1p20 ? 1.85 * ulp(y) : size <= 0x1p22 ? 3.4e-7 : HUGE_VAL;
    }
    if (f == unary_of(Activation::tanh)) return 1.4 * ulp(y);
    if (f == unary_of(Activation::relu2)) return 0.5 * ulp(y);
    if (f == unary_of(Activation::sigmoid)) return 0x1p-22 * y + 0x1p-127;
    if (f == unary_of(Activation::softplus)) return 0x1p-22 * y + 0x1p-115;
    return 0x1p-23 * size + 0x1p-149;  // another activation
}

/// Floats from all over: every `stride`-th one, and the special ones with their neighbours.
Guarded<float> sample(std::uint32_t stride) {
    std::vector<float> x;
    for (std::uint64_t b = 0; b <= 0xffffffffu; b += stride) x.push_back(float_of(static_cast<std::uint32_t>(b)));
    for (const float special :
         {0.0f, 0x1p-149f, 0x1p-126f, kTanhSmall, kTanhSmall / 2, kErfSmall, 1.0f, kErfMax, kExpMax, 80.0f, 88.72284f,
          44.36142f, 0x1p20f, kSinMax, 3.4028235e38f, kInfinity, kNanFloat, 1.5707964f})
        for (int step = -2; step <= 2; ++step) {
            const float near = float_of(bits(special) + static_cast<std::uint32_t>(step));
            x.insert(x.end(), {near, -near});
        }
    Guarded<float> all(x.size());
    std::copy(x.begin(), x.end(), all.begin());
    return all;
}

float at(Unary f, float x) {
    float y = -1.0f;
    kernels_scalar.floats.unary[static_cast<int>(f)](&x, 1, &y);
    return y;
}

}  // namespace

TEST_CASE("unary: the same bits on every instruction set, for floats from all over") {
    const Guarded<float> x = sample(4093);
    for (int f = 0; f < kUnaryCount; ++f) {
        Guarded<float> want(x.size()), got(x.size());
        kernels_scalar.floats.unary[f](x.data(), x.size(), want.data());
        std::size_t n = 0;
        const Kernels* const* tables = usable_kernels(n);
        for (std::size_t i = 0; i < n; ++i) {
            CAPTURE(f);
            CAPTURE(std::string(tables[i]->isa));
            tables[i]->floats.unary[f](x.data(), x.size(), got.data());
            CHECK(same_bits(want, got));
        }
    }
}

TEST_CASE("unary: errors are as stated") {
    const Guarded<float> x = sample(8191);
    Guarded<float> y(x.size());
    for (int f = 0; f < kUnaryCount; ++f) {
        const auto function = static_cast<Unary>(f);
        kernels_scalar.floats.unary[f](x.data(), x.size(), y.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (!std::isfinite(x[i])) continue;
            const double want = exact(function, x[i]);
            // A result that is nearer to 2^128 than to the largest float may be either.
            const bool overflow = std::abs(want) > 0x1.fffffdp127 && std::isinf(y[i]) && y[i] > 0;
            const double error = std::abs(y[i] - want), limit = allowed(function, x[i], want);
            if (overflow || limit == HUGE_VAL || error <= limit) continue;
            CAPTURE(f);
            CAPTURE(x[i]);
            CAPTURE(y[i]);
            CAPTURE(want);
            CHECK(error <= limit);
        }
    }
}

TEST_CASE("unary: what is exact is exact") {
    for (const float zero : {0.0f, -0.0f}) {
        CHECK(bits(at(Unary::exp, zero)) == bits(1.0f));
        CHECK(bits(at(Unary::cos, zero)) == bits(1.0f));
        CHECK(at(Unary::sin, zero) == 0.0f);
        for (const Unary odd : {Unary::tanh, Unary::erf, unary_of(Activation::gelu), unary_of(Activation::gelu_tanh),
                                unary_of(Activation::silu), unary_of(Activation::tanh),
                                unary_of(Activation::silu_clamped), unary_of(Activation::quick_gelu)})
            CHECK(bits(at(odd, zero)) == bits(zero));
    }
    CHECK(bits(at(Unary::exp, std::nextafter(-80.0f, -81.0f))) == bits(0.0f));
    CHECK(at(Unary::exp, -80.0f) > 0.0f);
    CHECK(bits(at(Unary::exp, -kInfinity)) == bits(0.0f));
    CHECK(at(Unary::exp, 88.72283f) < kInfinity);
    CHECK(at(Unary::exp, 88.7229f) == kInfinity);
    CHECK(at(Unary::exp, kInfinity) == kInfinity);
    for (const float sign : {1.0f, -1.0f})
        for (const float large : {10.0f, 100.0f, 3e38f, kInfinity}) {
            CHECK(at(Unary::tanh, sign * large) == sign);
            CHECK(at(Unary::erf, sign * large) == sign);
        }
    for (const Unary f : {unary_of(Activation::gelu), unary_of(Activation::gelu_tanh), unary_of(Activation::silu),
                          unary_of(Activation::quick_gelu)}) {
        CHECK(at(f, 100.0f) == 100.0f);
        CHECK(at(f, kInfinity) == kInfinity);
        CHECK(bits(at(f, -1000.0f)) == bits(-0.0f));
        CHECK(bits(at(f, -kInfinity)) == kNan);  // −∞·0, as elsewhere
    }
    const Unary squared = unary_of(Activation::relu2);
    for (const float below : {-0.0f, -0x1p-149f, -3.0f, -kInfinity}) CHECK(bits(at(squared, below)) == bits(0.0f));
    CHECK(at(squared, 3.0f) == 9.0f);
    CHECK(at(squared, 1e20f) == kInfinity);
    CHECK(at(squared, kInfinity) == kInfinity);
    const Unary clamped = unary_of(Activation::silu_clamped);
    CHECK(at(clamped, 100.0f) == at(clamped, 7.0f));
    CHECK(at(clamped, kInfinity) == at(clamped, 7.0f));
    CHECK(at(clamped, 6.5f) < at(clamped, 7.0f));
    for (const Unary f : {Unary::sin, Unary::cos}) {
        CHECK(std::abs(at(f, kSinMax)) <= 1.0f);
        for (const float far : {std::nextafter(kSinMax, 1e9f), 1e30f, kInfinity, -kInfinity})
            CHECK(bits(at(f, far)) == kNan);
    }
    for (int f = 0; f < kUnaryCount; ++f)
        for (const std::uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu})
            CHECK(bits(at(static_cast<Unary>(f), float_of(nan))) == kNan);
}

TEST_CASE("fma without an instruction for it is rounded once") {
    for (float (*const rounded_once)(float, float, float) : {fma_in_double, fma_in_integers}) {
        // Sums that lie by less than a double can hold above or below the middle between two floats.
        CHECK(rounded_once(1.0f + 0x1p-12f, 1.0f + 0x1p-12f, 0x1p-60f) == 1.0f + 0x1p-11f + 0x1p-23f);
        CHECK(rounded_once(1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -0x1p-60f) == 1.0f + 0x1p-11f);
        CHECK(rounded_once(1.0f + 0x1p-12f, 1.0f + 0x1p-12f, 0.0f) == 1.0f + 0x1p-11f);  // the middle itself: to even
        CHECK(rounded_once(-1.0f - 0x1p-12f, 1.0f + 0x1p-12f, -0x1p-60f) == -1.0f - 0x1p-11f - 0x1p-23f);
        // The same among subnormals: 2^-150 is half of the least one.
        CHECK(rounded_once(0x1p-75f, 0x1p-75f, 0.0f) == 0.0f);
        CHECK(rounded_once(0x1p-75f, 0x1p-75f * (1 + 0x1p-23f), 0.0f) == 0x1p-149f);
        CHECK(rounded_once(0x1.8p-75f, 0x1p-75f, 0x1p-149f) == 0x1p-148f);
        CHECK(bits(rounded_once(-0x1p-100f, 0x1p-100f, 0.0f)) == bits(-0.0f));
        CHECK(bits(rounded_once(-1.0f, 1.0f, 1.0f)) == bits(0.0f));
        CHECK(bits(rounded_once(-1.0f, 0.0f, -0.0f)) == bits(-0.0f));
        CHECK(rounded_once(0x1p127f, 2.0f, -0x1.fffffep127f) == 0x1p104f);
        CHECK(rounded_once(0x1p127f, 2.0f, -0x1p102f) == kInfinity);
        CHECK(rounded_once(0x1p127f, 2.0f, -0x1.000002p103f) == 0x1.fffffep127f);
        CHECK(std::isnan(rounded_once(kInfinity, 0.0f, 1.0f)));
        CHECK(std::isnan(rounded_once(kInfinity, 1.0f, -kInfinity)));
        CHECK(rounded_once(-kInfinity, 1.0f, 1.0f) == -kInfinity);

        // Against the C library's, whose method is its own. Exponents near one another and short fractions make ties
        // likely.
        std::mt19937 random(1);
        int wrong = 0;
        for (int i = 0; i < 3000000; ++i) {
            std::uint32_t a = random(), b = random(), c = random();
            if (i % 8) {
                const std::uint32_t ea = 1 + random() % 254, eb = i % 2 ? 127 - random() % 60 : 1 + random() % 254;
                const int sum = static_cast<int>(ea + eb) - 127 + static_cast<int>(random() % 60) - 30;
                const auto ec = static_cast<std::uint32_t>(std::min(std::max(i % 8 == 7 ? i % 3 : sum, 0), 254));
                a = (a & 0x807fffffu) | ea << 23;
                b = (b & 0x807fffffu) | eb << 23;
                c = (c & 0x807fffffu) | ec << 23;
                if (i % 8 > 3) a &= ~0u << random() % 23, b &= ~0u << random() % 23, c &= ~0u << random() % 23;
            }
            const float x = float_of(a), y = float_of(b), z = float_of(c);
            wrong += bits(canonical(rounded_once(x, y, z))) != bits(canonical(std::fma(x, y, z)));
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("halves: nearest, ties to even, finite if they were, and back exactly") {
    const auto exact_half = [](float x) -> std::uint32_t {
        const std::uint32_t sign = bits(x) >> 16 & 0x8000u;
        const double size = std::abs(static_cast<double>(x));
        if (std::isnan(x)) return 0x7e00u;
        if (std::isinf(x)) return sign | 0x7c00u;
        const int unit = std::max(size == 0 ? -24 : std::ilogb(size) - 10, -24);
        const double rounded = std::nearbyint(std::ldexp(size, -unit));  // in units of the last bit
        if (std::ldexp(rounded, unit) > 65504) return sign | 0x7bffu;
        return sign | (static_cast<std::uint32_t>(rounded) + static_cast<std::uint32_t>(unit + 24) * 1024u);
    };
    int wrong = 0;
    for (std::uint64_t b = 0; b <= 0xffffffffu; b += 509) {
        const float x = float_of(static_cast<std::uint32_t>(b));
        wrong += to_f16(x) != exact_half(x);
    }
    CHECK(wrong == 0);
    for (std::uint32_t half = 0; half < 0x10000u; ++half) {
        const auto h = static_cast<std::uint16_t>(half);
        const double value = value_of(reinterpret_cast<const std::byte*>(&h), 0, Type::f16);
        const float x = from_f16(h);
        wrong += std::isnan(value) ? !std::isnan(x) || to_f16(x) != 0x7e00u
                                   : x != value || std::signbit(x) != std::signbit(value) || to_f16(x) != half;
        if ((half & 0x7fffu) >= 0x7bffu) continue;
        // The middle between this half and the next, and what lies just beside it.
        const auto next = static_cast<std::uint16_t>(half + 1);
        const auto middle =
            static_cast<float>((value + value_of(reinterpret_cast<const std::byte*>(&next), 0, Type::f16)) / 2);
        for (const float y : {middle, std::nextafter(middle, -kInfinity), std::nextafter(middle, kInfinity)})
            wrong += to_f16(y) != exact_half(y);
    }
    CHECK(wrong == 0);
}
