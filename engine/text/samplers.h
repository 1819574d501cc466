// The samplers of Part::samplers, each by the paper or the discussion that describes it. See fovea/sampler.h for their order.
#pragma once
#include "engine/text/candidates.h"
#include "fovea/status.h"

namespace fovea {

/// What null and zeros stand for is put in their places.
[[nodiscard]] MoreSamplers settled(const MoreSamplers* more) noexcept;
/// Errors: bad_argument (an option outside its range).
[[nodiscard]] Status check_samplers(const MoreSamplers& more) noexcept;

/// DRY (P. E. Weidmann 2024, github.com/oobabooga/text-generation-webui, pull request 5677). Where the text's last n tokens
/// stand earlier in it, the token behind them there loses multiplier · base^(n − allowed length). `candidates` stand by id.
void penalize_repetitions(std::span<Candidate> candidates, const SampledText& text, const MoreSamplers& o) noexcept;

/// Top-nσ (Tang et al. 2024, equation 3): the logits that lie at most n standard deviations below the highest.
[[nodiscard]] std::span<Candidate> keep_near_highest(std::span<Candidate> candidates, const Weights& weights,
                                                     float n) noexcept;

/// Locally typical sampling (Meister et al. 2022, equation 10): the fewest whose probabilities reach `share`, first those whose
/// surprise is nearest to the entropy. They are in that order afterwards.
[[nodiscard]] std::span<Candidate> keep_typical(std::span<Candidate> candidates, const Weights& weights,
                                                float share) noexcept;

/// XTC (P. E. Weidmann 2024, github.com/oobabooga/text-generation-webui, pull request 6335): of those at least `threshold`
/// probable the least probable stays. The order stays.
[[nodiscard]] std::span<Candidate> leave_out_likely(std::span<Candidate> candidates, const Weights& weights,
                                                    float threshold) noexcept;

// Mirostat 2.0 (Basu et al. 2021, algorithm 2).
/// The bound of the next token's surprise, in bits.
[[nodiscard]] float mirostat_bound(const MoreSamplers& o, const SampledText& text) noexcept;
/// Those with at most that surprise, at least the likeliest. The order stays.
[[nodiscard]] std::span<Candidate> keep_unsurprising(std::span<Candidate> candidates, const Weights& weights,
                                                     float bound) noexcept;
/// Moves the bound by what `chosen` was more surprising among `kept` than it should be.
void move_bound(const MoreSamplers& o, std::span<const Candidate> kept, const Weights& weights, const Candidate& chosen,
                const SampledText& text) noexcept;

}  // namespace fovea
