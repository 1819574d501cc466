// Candidates of the next token: their order and their weights.
#pragma once
#include <cstddef>
#include <span>

#include "fovea/sampler.h"

namespace fovea {

/// A total order, so that no sort's inner workings can show.
inline bool before(const Candidate& a, const Candidate& b) noexcept {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// Unnormalised probabilities: exp((logit - highest) / temperature), 1 for the first in order.
struct Weights {
    float highest, temperature;
    void (*exp)(const float* x, std::size_t n, float* y) noexcept;

    /// Calls visit(i, weight of candidates[i]) in order until it returns false.
    template<class Visit>
    void each(std::span<const Candidate> candidates, Visit&& visit) const noexcept {
        constexpr std::size_t kPiece = 256;
        float x[kPiece], weight[kPiece];
        for (std::size_t begin = 0; begin < candidates.size(); begin += kPiece) {
            const std::size_t left = candidates.size() - begin, n = left < kPiece ? left : kPiece;
            for (std::size_t i = 0; i < n; ++i) {
                const float logit = candidates[begin + i].logit;
                x[i] = logit == highest ? 0.0f : (logit - highest) / temperature;  // equal first: both may be infinite
            }
            exp(x, n, weight);
            for (std::size_t i = 0; i < n; ++i)
                if (!visit(begin + i, weight[i])) return;
        }
    }

    [[nodiscard]] float sum(std::span<const Candidate> candidates) const noexcept {
        float total = 0;
        each(candidates, [&](std::size_t, float weight) { return total += weight, true; });
        return total;
    }
};

/// Keeps the candidates that weigh at least `least`, in their order.
inline std::span<Candidate> keep_heavy(std::span<Candidate> candidates, const Weights& weights, float least) noexcept {
    std::size_t n = 0;
    weights.each(candidates, [&](std::size_t i, float weight) {
        if (weight >= least) candidates[n++] = candidates[i];
        return true;
    });
    return candidates.first(n);
}

}  // namespace fovea
