#include "convert/weights/mel_filters.h"

#include <algorithm>

#include "host/base/exact_math.h"

namespace fovea {
namespace {

constexpr double kHighestHertz = 8000;  // of the filters, whatever the rate, as in transformers
constexpr double kHertzPerMel = 200.0 / 3.0, kBendHertz = 1000.0, kBendMel = kBendHertz / kHertzPerMel;
const double kMelsPerLog = 27.0 / exact_log(6.4);

double mel_of(double hertz) {
    return hertz < kBendHertz ? hertz / kHertzPerMel : kBendMel + exact_log(hertz / kBendHertz) * kMelsPerLog;
}

double hertz_of(double mel) {
    return mel < kBendMel ? mel * kHertzPerMel : kBendHertz * exact_exp((mel - kBendMel) / kMelsPerLog);
}

}  // namespace

std::vector<float> mel_filters(const Sound& sound) {
    const double highest_mel = mel_of(kHighestHertz);
    std::vector<double> corners(std::size_t{sound.n_mels} + 2);
    for (std::size_t i = 0; i < corners.size(); ++i)
        corners[i] = hertz_of(highest_mel * static_cast<double>(i) / static_cast<double>(corners.size() - 1));
    const std::uint32_t n_bins = sound.n_bins();
    std::vector<float> filters;
    filters.reserve(std::size_t{sound.n_mels} * n_bins);
    for (std::uint32_t mel = 0; mel < sound.n_mels; ++mel) {
        const double low = corners[mel], peak = corners[mel + 1], high = corners[mel + 2];
        for (std::uint32_t bin = 0; bin < n_bins; ++bin) {
            const double hertz = sound.sample_rate / 2.0 * bin / (n_bins - 1);
            const double rising = (hertz - low) / (peak - low), falling = (high - hertz) / (high - peak);
            filters.push_back(static_cast<float>(std::max(0.0, std::min(rising, falling)) * (2.0 / (high - low))));
        }
    }
    return filters;
}

}  // namespace fovea
