// Where somebody speaks: bursts over quiet and over noise, clicks, pauses, and windows of one level alone.
#include "host/speech/voice.h"

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace fovea;

constexpr std::uint32_t kMels = 4;

/// Levels as frames: n of each.
std::vector<float> frames_of(std::initializer_list<std::pair<std::size_t, float>> parts) {
    std::vector<float> frames;
    for (const auto& [n, level] : parts)
        for (std::size_t i = 0; i < n * kMels; ++i) frames.push_back(level + 0.02f * static_cast<float>(i % 3) - 0.02f);
    return frames;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> found(
    std::initializer_list<std::pair<std::size_t, float>> parts) {
    VoiceFinder finder;
    const auto stretch = finder.find(frames_of(parts), kMels);
    if (!stretch) return {};
    return std::pair{stretch->begin, stretch->end};
}

TEST_CASE("voice: a stretch begins and ends a moment beside what is loud; longer pauses part it") {
    using Stretch = std::pair<std::uint32_t, std::uint32_t>;
    for (const float quiet : {-1.5f, -0.3f}) {
        CAPTURE(quiet);
        CHECK(found({{500, quiet}, {100, 0.5f}, {2400, quiet}}) == Stretch{460, 640});
        CHECK(found({{500, quiet}, {100, 0.5f}, {150, quiet}, {50, 0.5f}, {2200, quiet}}) == Stretch{460, 840});
        CHECK(found({{500, quiet}, {100, 0.5f}, {400, quiet}, {50, 0.5f}, {1950, quiet}}) == Stretch{460, 640});
        CHECK(found({{20, quiet}, {100, 0.5f}, {2880, quiet}}) == Stretch{0, 160});
        CHECK(found({{2900, quiet}, {100, 0.5f}}) == Stretch{2860, 3000});
        CHECK(found({{500, quiet}, {5, 0.5f}, {1000, quiet}, {50, 0.5f}, {1445, quiet}}) ==
              Stretch{1465, 1595});  // a click
        CHECK(!found({{3000, quiet}}));
    }
    CHECK(!found({}));
}

TEST_CASE("voice: a window of one level is as loud as the threshold of the one before says") {
    VoiceFinder finder;
    CHECK(finder.find(frames_of({{1000, -1.0f}, {500, 0.5f}, {1500, -1.0f}}), kMels));
    CHECK(finder.find(frames_of({{40, 0.5f}}), kMels));
    CHECK(!finder.find(frames_of({{40, -1.0f}}), kMels));
}

}  // namespace
