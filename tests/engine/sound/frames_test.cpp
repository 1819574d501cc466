// Frames of sound: against NumPy's float64 (tests/golden/make_sound.py), the same bits everywhere, exact scratch, refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/sound/transform.h"
#include "fovea/sound.h"
#include "host/base/arrays.h"
#include "tests/support/guarded.h"

namespace {

using namespace fovea;
using fovea::testing::Guarded;

/// make_sound.py's samples_of.
std::vector<float> samples_of(std::size_t n) {
    std::uint32_t noise = 1;
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) {
        noise = noise * 1664525u + 1013904223u;
        const int wave = std::abs(static_cast<int>(i * 61 % 2048) - 1024) - 512;
        const int quiet = 10 + static_cast<int>(i * 8 / n);
        x[i] = static_cast<float>(std::ldexp(wave, -quiet) + std::ldexp(static_cast<int>(noise >> 20) - 2048, -20));
    }
    return x;
}

std::vector<float> golden(const std::string& name) {
    return read_floats(std::string(FOVEA_GOLDEN_DIR "/sound/") + name + ".npy").data;
}

constexpr Sound kWhisper{.sample_rate = 16000, .n_fft = 400, .hop_length = 160, .n_mels = 80, .n_frames = 50};

/// Into rooms of exactly the sizes that are wanted, between guard pages.
std::vector<float> frames_of(const Sound& sound, const std::vector<float>& filters, const std::vector<float>& samples) {
    std::uint64_t n_bytes = 0;
    REQUIRE(frames_scratch(sound, n_bytes).ok());
    Guarded<std::byte> scratch(n_bytes, fovea::testing::Flush::end, 8);
    Guarded<float> frames(std::size_t{sound.n_frames} * sound.n_mels);
    const Status status =
        make_frames(sound, filters, samples, {scratch.data(), scratch.size()}, {frames.data(), frames.size()});
    CAPTURE(StatusLine(status).c_str());
    REQUIRE(status.ok());
    return {frames.begin(), frames.end()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
    return most;
}

std::uint32_t hash_of(const std::vector<float>& numbers) {
    std::uint32_t fnv = 2166136261u;
    for (const float x : numbers) fnv = (fnv ^ std::bit_cast<std::uint32_t>(x)) * 16777619u;
    return fnv;
}

TEST_CASE("sound: frames are NumPy's, of whole windows, short ones, silence, and transforms of odd sizes") {
    const struct {
        const char *name, *filters;
        Sound sound;
        std::size_t n_samples;
    } cases[] = {
        {"whole", "whole", kWhisper, 8000},
        {"short", "whole", kWhisper, 5003},
        {"one", "whole", kWhisper, 1},
        {"silence", "whole", kWhisper, 0},
        {"odd", "odd", {8000, 63, 17, 12, 31}, 400},
        {"prime", "prime", {8000, 46, 46, 7, 9}, 414},
        {"even", "even", {8000, 64, 20, 9, 17}, 340},
    };
    for (const auto& c : cases) {
        CAPTURE(c.name);
        const auto frames = frames_of(c.sound, golden(std::string(c.filters) + "_filters"), samples_of(c.n_samples));
        CHECK(largest_difference(frames, golden(std::string(c.name) + "_frames")) < 1e-6);
    }
}

TEST_CASE("sound: thirty seconds have one hash on every machine; silence behind them changes nothing") {
    Sound sound = kWhisper;
    sound.n_frames = 3000;
    const std::vector<float> filters = golden("whole_filters");
    CHECK(hash_of(frames_of(sound, filters, samples_of(480000))) == 3263498230u);
    std::vector<float> samples = samples_of(100001);
    const std::vector<float> frames = frames_of(sound, filters, samples);
    samples.resize(480000);
    CHECK(hash_of(frames) == hash_of(frames_of(sound, filters, samples)));
}

TEST_CASE("sound: scratch to the byte, and what is refused leaves the frames as they were") {
    std::uint64_t n_bytes = 0;
    REQUIRE(frames_scratch(kWhisper, n_bytes).ok());
    CHECK(n_bytes <= 80 * 1024);
    std::vector<double> room(n_bytes / 8 + 1);
    const std::span<std::byte> scratch(reinterpret_cast<std::byte*>(room.data()), n_bytes);
    std::vector<float> filters = golden("whole_filters"), samples = samples_of(8000), frames(50 * 80, 7.0f);
    const auto refused = [&](const Sound& sound, std::span<std::byte> s) {
        const Status status = make_frames(sound, filters, samples, s, frames);
        for (const float x : frames) REQUIRE(x == 7.0f);
        return std::string(StatusLine(status).view());
    };
    CHECK(refused(kWhisper, scratch.first(n_bytes - 1)) == "buffer too small: scratch bytes: expected at least " +
                                                               std::to_string(n_bytes) + ", got " +
                                                               std::to_string(n_bytes - 1));
    CHECK(refused(kWhisper, std::span(scratch.data() + 1, n_bytes)) ==
          "misaligned: the scratch's address modulo 8: expected 0, got 1");
    CHECK(refused({}, scratch) == "configuration invalid: sound: sample_rate: expected at least 1, got 0");
    samples.push_back(0);
    CHECK(refused(kWhisper, scratch) == "bad shape: samples: expected at most 8000, got 8001");
    samples.pop_back();
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        samples[4321] = bad;
        CHECK(refused(kWhisper, scratch) ==
              "bad argument: finite samples before the first other: expected 8000, got 4321");
        samples[4321] = 0;
        filters[5] = bad;
        CHECK(refused(kWhisper, scratch) ==
              "bad argument: finite filters before the first other: expected 16080, got 5");
        filters[5] = 0;
    }
    filters.pop_back();
    CHECK(refused(kWhisper, scratch) == "bad shape: filters: expected 16080, got 16079");
}

TEST_CASE("sound: values of a configuration that make no frames") {
    std::uint64_t n_bytes = 9;
    const auto refused = [&](Sound s) {
        const Status status = frames_scratch(s, n_bytes);
        CHECK(n_bytes == 9);
        return status.code == Code::config_invalid;
    };
    CHECK(refused({}));
    CHECK(refused({16000, 1, 160, 80, 3000}));
    CHECK(refused({16000, 1u << 31, 160, 80, 3000}));
    CHECK(refused({16000, 400, 0, 80, 3000}));
    CHECK(refused({16000, 400, 160, ~0u, 3000}));
    CHECK(refused({16000, 400, 160, 80, ~0u}));
    CHECK(refused({16000, 400, 100, 80, 2}));       // 200 samples are not enough to mirror 200
    CHECK(refused({16000, 65521, 65536, 80, 60}));  // a prime: minutes of each frame
    CHECK(refused({16000, 4093, 160, 80, 3000}));
    std::uint64_t most = 0;
    CHECK(frames_scratch({16000, 1u << 16, 160, 80, 3000}, most).ok());
    CHECK(frames_scratch({16000, 509, 160, 80, 3000}, most).ok());
    CHECK(frames_scratch({16000, 400, 201, 80, 1}, n_bytes).ok());
}

TEST_CASE("sound: the largest samples overflow nothing") {
    std::vector<float> samples(8000, std::numeric_limits<float>::max());
    for (const float x : frames_of(kWhisper, golden("whole_filters"), samples)) REQUIRE(std::isfinite(x));
}

TEST_CASE("sound: roots of unity and logarithms are within 3e-16 of libm's") {
    // Where long double is double, the angle itself is off by as much as the result.
    const double most = std::numeric_limits<long double>::digits > 53 ? 3e-16 : 2e-15;
    for (const std::uint32_t n : {1u, 2u, 3u, 8u, 400u, 1000u, 8191u})
        for (std::uint32_t k = 0; k < n; ++k) {
            const long double angle = 2 * 3.14159265358979323846264338327950288L * k / n;
            const Complex w = unit_root(k, n);
            REQUIRE(std::abs(static_cast<double>(w.re - std::cos(angle))) < most);
            REQUIRE(std::abs(static_cast<double>(w.im + std::sin(angle))) < most);
        }
    for (double x = 1e-10; x < 1e120; x *= 1.0078125)
        REQUIRE(std::abs(log10_of(x) - std::log10(x)) <= 3e-16 * std::max(1.0, std::abs(std::log10(x))));
    CHECK(log10_of(1.0) == 0.0);
    CHECK(unit_root(100, 400).re == 0.0);
}

}  // namespace
