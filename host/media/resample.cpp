#include "host/media/resample.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "engine/sound/transform.h"

namespace fovea {
namespace {

constexpr std::int64_t kZeros = 24;             // of the sinc on each side
constexpr std::int64_t kCutOff = 15, kOf = 16;  // of the lower rate's highest frequency

/// sin(π·a/b) and cos(π·a/b).
Complex half_turns(std::int64_t a, std::int64_t b) {
    const std::int64_t turn = 2 * b, k = (a % turn + turn) % turn;
    const Complex w = unit_root(static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(turn));
    return {w.re, -w.im};
}

}  // namespace

Resampler::Resampler(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t common = std::gcd(from, to);
    up_ = to / common, down_ = from / common;
    // Zeros are max(up, down)/up·16/15 samples of the source apart.
    half_ = (kZeros * kOf * std::max(up_, down_)) / (kCutOff * up_) + 1;
    rows_.resize(up_);
    held_.assign(static_cast<std::size_t>(half_), 0.0f);
    first_ = -half_;
}

/// The neighbour k places on is k·up − phase steps of 1/up away: that many zeros of the sinc are cut·distance/max(up, down).
void Resampler::make_row(std::uint32_t phase) {
    std::vector<double>& row = rows_[phase];
    const std::int64_t widest = std::max(up_, down_);
    double sum = 0;
    for (std::int64_t k = 1 - half_; k <= half_; ++k) {
        const std::int64_t distance = kCutOff * (k * up_ - phase), zero = kOf * widest;
        double weight = 0;
        if (distance == 0) weight = 1;
        if (distance != 0 && std::abs(distance) < kZeros * zero) {
            const double x = 2 * kQuarterTurn * static_cast<double>(distance) / static_cast<double>(zero);
            const double c = half_turns(distance, kZeros * zero).re;
            const double window = 0.42 + 0.5 * c + 0.08 * (2 * c * c - 1);
            weight = half_turns(distance, zero).im / x * window;
        }
        row.push_back(weight);
        sum += weight;
    }
    for (double& weight : row) weight /= sum;
}

void Resampler::make_out(std::vector<float>& out) {
    const std::int64_t held_end = first_ + static_cast<std::int64_t>(held_.size());
    for (;; ++n_out_) {
        const std::uint64_t step = n_out_ * down_;
        const auto at = static_cast<std::int64_t>(step / up_);
        if (at + half_ >= held_end) break;
        const auto phase = static_cast<std::uint32_t>(step % up_);
        if (rows_[phase].empty()) make_row(phase);
        const float* x = held_.data() + (at + 1 - half_ - first_);
        double sum = 0;
        for (const double weight : rows_[phase]) sum += weight * static_cast<double>(*x++);
        out.push_back(static_cast<float>(sum));
    }
    const std::int64_t next = static_cast<std::int64_t>(n_out_ * down_ / up_) + 1 - half_;
    if (next > first_) {
        held_.erase(held_.begin(), held_.begin() + std::min(next - first_, held_end - first_));
        first_ = std::min(next, held_end);
    }
}

void Resampler::push(std::span<const float> samples, std::vector<float>& out) {
    n_in_ += samples.size();
    if (up_ == down_) {
        out.insert(out.end(), samples.begin(), samples.end());
        return;
    }
    held_.insert(held_.end(), samples.begin(), samples.end());
    make_out(out);
}

void Resampler::finish(std::vector<float>& out) {
    if (up_ == down_) return;
    const std::uint64_t n_all = (n_in_ * up_ + down_ - 1) / down_, n_before = out.size() - n_out_;
    held_.insert(held_.end(), static_cast<std::size_t>(2 * half_) + down_ / up_ + 1, 0.0f);
    make_out(out);
    out.resize(static_cast<std::size_t>(n_before + n_all));
}

}  // namespace fovea
