#include "host/speech/voice.h"

#include <algorithm>
#include <vector>

namespace fovea {

std::optional<VoicedStretch> VoiceFinder::find(std::span<const float> frames, std::uint32_t n_mels) {
    constexpr float kShare = 0.35f, kContrast = 0.2f;                // the contrast is 8 dB
    constexpr std::uint32_t kLeast = 8, kMargin = 40, kPause = 200;  // frames of 10 ms
    const auto n = static_cast<std::uint32_t>(frames.size() / n_mels);
    std::vector<float> levels(n);
    for (std::uint32_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::uint32_t k = 0; k < n_mels; ++k) sum += static_cast<double>(frames[std::size_t{i} * n_mels + k]);
        levels[i] = static_cast<float>(sum / n_mels);
    }
    std::vector<float> sorted = levels;
    std::sort(sorted.begin(), sorted.end());
    if (n == 0) return std::nullopt;
    const float quiet = sorted[n / 10], loud = sorted[n - 1 - n / 200];
    if (loud - quiet >= kContrast) threshold_ = quiet + kShare * (loud - quiet);
    std::optional<VoicedStretch> found;
    for (std::uint32_t begin = 0, end = 0; begin < n; begin = end + 1) {
        for (end = begin; end < n && levels[end] > threshold_;) ++end;
        if (end - begin < kLeast) continue;  // a click
        if (found && begin > found->end + kPause) break;
        found = VoicedStretch{found ? found->begin : begin, end};
    }
    if (found) *found = {found->begin - std::min(found->begin, kMargin), std::min(found->end + kMargin, n)};
    return found;
}

}  // namespace fovea
