// What a q4 cache holds of keys and values, in double precision from its bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/format/half.h"
#include "engine/kernels/kernels.h"
#include "tests/support/guarded.h"
#include "tests/support/kernel_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr int kQ4 = static_cast<int>(Type::q4);

double half_at(const std::byte* p) {
    std::uint16_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return from_f16(bits);
}

/// A panel of sixteen keys, and of it what they stand for.
struct Keys {
    std::uint32_t head_dim;
    Guarded<std::byte> panel;

    explicit Keys(std::uint32_t dim) : head_dim(dim), panel(key_panel_bytes(Type::q4, dim)) {}

    void write(std::uint32_t lane, const std::vector<float>& key) {
        kernels_scalar.floats.write_key[kQ4](key.data(), head_dim, lane, panel.data());
    }
    [[nodiscard]] bool near(std::uint32_t lane) const { return std::to_integer<int>(panel[lane * 2]) % 2 == 1; }
    [[nodiscard]] double reference(std::uint32_t i) const {
        const auto upper = std::to_integer<unsigned>(panel[panel_bytes(Type::iq4_nl, head_dim) + i]);
        return from_f16(static_cast<std::uint16_t>(upper << 8));
    }
    [[nodiscard]] double base(std::uint32_t lane, std::uint32_t i) const { return near(lane) ? reference(i) : 0; }
    [[nodiscard]] double key(std::uint32_t lane, std::uint32_t i) const {
        return QuantPanel{panel.data(), Type::iq4_nl}.weight(i, lane) + base(lane, i);
    }
};

/// The most that a group may be off. With the scale amax/127 no number is farther from its entry than 14/127 of amax, where
/// the codebook ends at 113; a scale of least squares is no worse, but for rounding it and marking its last bit.
double most_wrong(const std::vector<double>& coded) {
    double amax = 0, squares = 0;
    for (const double x : coded) amax = std::max(amax, std::abs(x)), squares += x * x;
    return std::sqrt(32.0) * 14 / 127 * amax * 1.001 + 0x1p-9 * std::sqrt(squares) + 0x1p-18 * 127;
}

std::vector<float> random_key(std::mt19937& random, std::uint32_t n, float spread) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31f * spread;
    return x;
}

}  // namespace

TEST_CASE("q4 cache: keys are within their groups' errors, whether they take the panel's reference or not") {
    std::mt19937 random(7);
    for (const std::uint32_t dim : {1u, 8u, 31u, 32u, 64u, 80u, 130u})
        for (const float offset : {0.0f, 30.0f}) {
            CAPTURE(dim);
            CAPTURE(offset);
            Keys keys(dim);
            const std::vector<float> common = random_key(random, dim, offset);
            std::uint32_t n_near = 0;
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                std::vector<float> key = random_key(random, dim, 1.0f);
                for (std::uint32_t i = 0; i < dim; ++i) key[i] += common[i];
                keys.write(lane, key);
                n_near += keys.near(lane);
                double near = 0, far = 0;
                for (std::uint32_t i = 0; i < dim; ++i) {
                    if (lane == 0) CHECK(std::abs(keys.reference(i) - key[i]) <= std::abs(key[i]) / 8 + 0x1p-17);
                    near += std::pow(key[i] - keys.reference(i), 2), far += std::pow(key[i], 2);
                }
                if (std::abs(near - far) > 1e-4 * far) CHECK(keys.near(lane) == (near < far));
                for (std::uint32_t begin = 0; begin < dim; begin += kGroup) {
                    std::vector<double> coded;
                    double squares = 0;
                    for (std::uint32_t i = begin; i < std::min(dim, begin + kGroup); ++i) {
                        coded.push_back(key[i] - keys.base(lane, i));
                        squares += std::pow(keys.key(lane, i) - key[i], 2);
                    }
                    CHECK(std::sqrt(squares) <= most_wrong(coded));
                }
            }
            // A common part far above the rest is what the reference is for; the first key always takes it.
            CHECK(keys.near(0));
            if (offset > 0 && dim >= 8) CHECK(n_near == kLanes);
        }
}

TEST_CASE("q4 cache: values are within their groups' errors") {
    std::mt19937 random(8);
    for (const std::uint32_t dim : {1u, 16u, 40u, 64u}) {
        CAPTURE(dim);
        Guarded<std::byte> panel(value_panel_bytes(Type::q4, dim));
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const std::vector<float> value = random_key(random, dim, 3.0f);
            kernels_scalar.floats.write_value[kQ4](value.data(), dim, lane, panel.data());
            for (std::uint32_t begin = 0; begin < dim; begin += kGroup) {
                const std::byte* group = panel.data() + begin / kGroup * (kLanes * 18);
                std::vector<double> coded;
                double squares = 0;
                for (std::uint32_t i = begin; i < std::min(dim, begin + kGroup); ++i) {
                    const int byte = std::to_integer<int>(group[32 + lane * 16 + i % 16]);
                    const double got = half_at(group + lane * 2) * kNonlinear4[i % kGroup < 16 ? byte % 16 : byte / 16];
                    coded.push_back(value[i]);
                    squares += std::pow(got - value[i], 2);
                }
                CHECK(std::sqrt(squares) <= most_wrong(coded));
            }
        }
    }
}

TEST_CASE("q4 cache: what is not finite makes its group NaN, and a reference of it is 0; what is tiny becomes 0") {
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (const float bad : {infinity, -infinity, nan}) {
        Keys keys(96);
        std::vector<float> key(96, 2.0f);
        key[40] = bad;
        keys.write(0, key);
        CHECK(keys.reference(40) == 0.0);
        CHECK(keys.reference(41) == 2.0);
        for (std::uint32_t i = 0; i < 96; ++i) CHECK(std::isnan(keys.key(0, i)) == (i / kGroup == 1));
        // A key behind it is as good as any.
        key[40] = 2.0f;
        keys.write(1, key);
        for (std::uint32_t i = 0; i < 96; ++i) CHECK(std::abs(keys.key(1, i) - 2.0) < 0.3);
    }
    Keys keys(32);
    keys.write(0, std::vector<float>(32, 1e-35f));
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(keys.key(0, i) == 0.0);
}

TEST_CASE("q4 cache: the first position of a panel clears the others' scales") {
    Keys keys(40);
    Guarded<std::byte> values(value_panel_bytes(Type::q4, 40));
    const std::vector<float> x(40, -3.0f);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        keys.write(lane, x);
        kernels_scalar.floats.write_value[kQ4](x.data(), 40, lane, values.data());
    }
    keys.write(0, x);
    kernels_scalar.floats.write_value[kQ4](x.data(), 40, 0, values.data());
    for (std::uint32_t lane = 1; lane < kLanes; ++lane) {
        CHECK_FALSE(keys.near(lane));
        CHECK(keys.key(lane, 0) == 0.0);
        CHECK(half_at(values.data() + lane * 2) == 0.0);
    }
}
