// How well a model predicts tokens, and how far its predictions are from another's.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"

namespace fovea {

/// Sums over the tokens that were predicted: all of a sequence but its first.
struct Evaluation {
    std::uint64_t n_predicted = 0;
    double surprise = 0;           ///< −log of the probability given to the token that came
    double against_surprise = 0;   ///< the other model's
    double divergence = 0;         ///< Σ p·log(p/q), p the other model's and q this one's (Kullback and Leibler 1951)
    std::uint64_t n_same_top = 0;  ///< times both thought the same token the likeliest

    [[nodiscard]] double perplexity() const { return std::exp(surprise / count()); }
    [[nodiscard]] double against_perplexity() const { return std::exp(against_surprise / count()); }
    [[nodiscard]] double mean_divergence() const { return divergence / count(); }
    [[nodiscard]] double same_top() const { return static_cast<double>(n_same_top) / count(); }

private:
    [[nodiscard]] double count() const { return static_cast<double>(n_predicted); }
};

/// Adds the predictions of `tokens` by a session of `opened`, begun anew; `tokens` fit into it. `against` may be null;
/// its model must have the same vocabulary. `pass_done` is called after every pass.
void evaluate(const host::Opened& opened, host::Runtime<Session>& running, host::Runtime<Session>* against,
              std::span<const Token> tokens, Evaluation& sum, const std::function<void()>& pass_done = {});

}  // namespace fovea
