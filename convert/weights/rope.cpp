#include "convert/weights/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "host/base/exact_math.h"

namespace fovea {
namespace {

/// base^(2i / rotary_dim), rounded as float32 arithmetic rounds it.
float wave(const Rope& rope, std::uint32_t i, std::uint32_t rotary_dim) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    return static_cast<float>(exact_exp(static_cast<double>(exponent) * exact_log(rope.base)));
}

/// Where in [0, rotary_dim / 2) a pair turns `rotations` times over the original positions (Peng et al. 2023, eq. 17).
double ramp_end(const Rope& rope, double rotations, std::uint32_t rotary_dim) {
    const double ratio = rope.original_positions / (rotations * 2.0 * std::numbers::pi);
    return rotary_dim * exact_log(ratio) / (2.0 * exact_log(rope.base));
}

void scale_yarn(const Rope& rope, std::uint32_t rotary_dim, std::vector<float>& frequencies) {
    double low = ramp_end(rope, rope.beta_fast, rotary_dim), high = ramp_end(rope, rope.beta_slow, rotary_dim);
    if (rope.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(rotary_dim - 1));
    if (low == high) high += 0.001;  // a ramp needs a width
    for (std::uint32_t i = 0; i < frequencies.size(); ++i) {
        const float at = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
        const float kept = 1.0f - std::clamp(at, 0.0f, 1.0f);
        const float divided = 1.0f / (static_cast<float>(rope.factor) * wave(rope, i, rotary_dim));
        frequencies[i] = divided * (1.0f - kept) + frequencies[i] * kept;
    }
}

// PyTorch divides a number by a tensor as the tensor's reciprocal times the number.
void scale_llama3(const Rope& rope, std::vector<float>& frequencies) {
    const auto positions = static_cast<float>(rope.original_positions), factor = static_cast<float>(rope.factor);
    const auto low = static_cast<float>(rope.low_factor);
    const auto longest = static_cast<float>(rope.original_positions / rope.low_factor);
    const auto shortest = static_cast<float>(rope.original_positions / rope.high_factor);
    for (float& frequency : frequencies) {
        const float wavelength = 1.0f / frequency * static_cast<float>(2.0 * std::numbers::pi);
        if (wavelength > longest) {
            frequency /= factor;
        } else if (!(wavelength < shortest)) {
            const float smooth =
                (1.0f / wavelength * positions - low) / static_cast<float>(rope.high_factor - rope.low_factor);
            frequency = (1.0f - smooth) * frequency / factor + smooth * frequency;
        }
    }
}

}  // namespace

std::vector<float> rope_frequencies(const Rope& rope, std::uint32_t rotary_dim) {
    if (!rope.long_divisors.empty()) {
        Rope one = rope;
        one.long_divisors.clear();
        std::vector<float> both = rope_frequencies(one, rotary_dim);
        one.divisors = rope.long_divisors;
        const std::vector<float> beyond = rope_frequencies(one, rotary_dim);
        both.insert(both.end(), beyond.begin(), beyond.end());
        return both;
    }
    std::vector<float> frequencies(rotary_dim / 2);
    for (std::uint32_t i = 0; i < frequencies.size(); ++i) frequencies[i] = 1.0f / wave(rope, i, rotary_dim);
    switch (rope.scaling) {
        case RopeScaling::none: break;
        case RopeScaling::linear:
            for (float& frequency : frequencies) frequency /= static_cast<float>(rope.factor);
            break;
        case RopeScaling::yarn: scale_yarn(rope, rotary_dim, frequencies); break;
        case RopeScaling::divided:
            for (std::uint32_t i = 0; i < frequencies.size(); ++i)
                frequencies[i] = 1.0f / (rope.divisors[i] * wave(rope, i, rotary_dim));
            break;
        case RopeScaling::proportional: {
            const auto n_turning = static_cast<std::size_t>(rotary_dim * rope.share / 2.0);
            for (float& frequency : frequencies) frequency /= static_cast<float>(rope.factor);
            std::fill(frequencies.begin() + std::min(n_turning, frequencies.size()), frequencies.end(), 0.0f);
            break;
        }
        case RopeScaling::llama3: scale_llama3(rope, frequencies); break;
    }
    return frequencies;
}

double yarn_attention_factor(double factor, double mscale) noexcept {
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * exact_log(factor) + 1.0;
}

}  // namespace fovea
