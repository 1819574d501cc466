#include "host/speech/chances.h"

#include <algorithm>

#include "host/base/exact_math.h"

namespace fovea {
namespace {

constexpr double kFarBelow = -60;  // exp(−60) is less than 2^-86
constexpr std::size_t kSums = 8;   // side by side

/// e^x for −60 <= x <= 0, within 2^-50: x = n·ln 2 + r, Taylor's series of e^r, n into the exponent.
inline double exp_below(double x) {
    constexpr double kRound = 0x1.8p52, kLog2E = 1.4426950408889634, kLn2High = 0x1.62e42fefa3800p-1;
    constexpr double kLn2Low = 0x1.ef35793c76730p-45;
    const double t = x * kLog2E + kRound, n = t - kRound;
    const double r = (x - n * kLn2High) - n * kLn2Low;
    constexpr double kSeries[] = {
        1,          1,           1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,      1.0 / 720,
        1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600};
    double y = kSeries[12];
    for (int i = 11; i >= 0; --i) y = y * r + kSeries[i];
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(y) + (std::bit_cast<std::uint64_t>(t) << 52));
}

// ---- deflate -------------------------------------------------------------------------------------------------------

constexpr std::size_t kLeastMatch = 3, kMostMatch = 258;
constexpr std::size_t kMostText =
    16384;  // below deflate's reach of 32768; matches take a time that grows with its square

/// Bits of a match: its length's code and extra bits, five for the distance's code, and its extra bits.
std::size_t match_bits(std::size_t length, std::size_t distance) {
    std::size_t extra = 0;
    for (std::size_t x = length - kLeastMatch; x >= 8 && length != kMostMatch; x >>= 1) ++extra;
    std::size_t far = 0;
    for (std::size_t x = distance - 1; x >= 4; x >>= 1) ++far;
    return (length >= 115 ? 8 : 7) + extra + 5 + far;
}

/// The longest earlier text that goes on like this, the nearest of equals.
struct RepeatedText {
    std::size_t length = 0, distance = 0;
};
RepeatedText longest_match(std::string_view text, std::size_t at) {
    RepeatedText best;
    const std::size_t most = std::min(kMostMatch, text.size() - at);
    for (std::size_t distance = 1; distance <= at; ++distance) {
        std::size_t n = 0;
        while (n < most && text[at + n] == text[at + n - distance]) ++n;
        if (n > best.length) best = {n, distance};
    }
    return best;
}

}  // namespace

double ExpSum::log() const { return sum > 0 ? most + exact_log(sum) : most; }

ExpSum exp_sum(std::span<const float> logits) {
    ExpSum result;
    for (const float x : logits) result.most = x > result.most ? static_cast<double>(x) : result.most;
    if (!(result.most > -std::numeric_limits<double>::infinity())) return result;
    double sums[kSums] = {};
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const double x = static_cast<double>(logits[i]) - result.most;
        if (!(x < kFarBelow)) sums[i % kSums] += x <= 0 ? exp_below(x) : x;  // NaN stays
    }
    for (const double sum : sums) result.sum += sum;
    return result;
}

double compression_ratio(std::string_view text) {
    text = text.substr(0, kMostText);
    if (text.empty()) return 0;
    std::size_t n_bits = 3 + 7;  // a block's kind and its end
    for (std::size_t at = 0; at < text.size();) {
        const RepeatedText match = longest_match(text, at);
        const bool taken = match.length >= kLeastMatch;
        n_bits += taken ? match_bits(match.length, match.distance) : static_cast<unsigned char>(text[at]) < 144 ? 8 : 9;
        at += taken ? match.length : 1;
    }
    return static_cast<double>(text.size()) / static_cast<double>(6 + (n_bits + 7) / 8);
}

}  // namespace fovea
