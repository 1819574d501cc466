// From logits to the next token, the same on every machine.
#pragma once
#include <cstdint>
#include <span>

#include "fovea/config.h"
#include "fovea/status.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Added to a token's logit, whatever the text: finite and within ±1e30, or -infinity, which forbids the token.
struct LogitBias {
    Token id = 0;
    float bias = 0;
};

/// Further samplers, which builds may leave out (Part::samplers). Zeros choose what is in brackets.
struct MoreSamplers {
    /// Above 0: a token that goes on with a repetition of n >= dry_allowed_length tokens loses
    /// dry_multiplier · dry_base^(n - dry_allowed_length) of its logit (P. E. Weidmann 2024, "DRY").
    float dry_multiplier = 0.0f;
    float dry_base = 0.0f;                 ///< [1.75]
    std::uint32_t dry_allowed_length = 0;  ///< [2]
    /// Above 0: keep the logits within so many standard deviations of the highest (Tang et al. 2024).
    float top_n_sigma = 0.0f;
    /// Below 1: after min_p, the fewest of nearly average surprise that reach p (Meister et al. 2022). [1]
    float typical_p = 0.0f;
    /// How often all tokens but the last of those at least xtc_threshold probable are left out (P. E. Weidmann 2024, "XTC").
    float xtc_probability = 0.0f;
    float xtc_threshold = 0.0f;  ///< [0.1]
    /// 2: in the place of all that leave tokens out, Mirostat 2.0 (Basu et al. 2021, algorithm 2) keeps those whose surprise
    /// is at most a bound, which moves by mirostat_eta times what each token's surprise differs from mirostat_tau bits.
    std::uint32_t mirostat = 0;
    float mirostat_tau = 0.0f;  ///< [5]
    float mirostat_eta = 0.0f;  ///< [0.1]
    /// A generator forbids tokens that end a text before so many new ones, unless nothing else is allowed.
    std::uint32_t min_tokens = 0;
};

struct SamplerOptions {
    float temperature = 0.0f;     ///< 0: greedy
    std::uint32_t top_k = 0;      ///< keep the k most likely; 0: all
    float top_p = 1.0f;           ///< then the fewest whose probabilities reach p (Holtzman et al. 2020)
    float min_p = 0.0f;           ///< then those at least min_p times as likely as the first
    float repeat_penalty = 1.0f;  ///< divides positive, multiplies negative recent logits (Keskar et al. 2019)
    std::uint64_t seed = 0;
    float frequency_penalty = 0.0f;  ///< taken from a token's logit for each time it came, -1000 to 1000
    float presence_penalty = 0.0f;   ///< taken once, if it came at all
    std::span<const LogitBias>
        bias{};  ///< a view, which must stay valid; ids outside the vocabulary are skipped, biases of one id are added
    const MoreSamplers* more = nullptr;  ///< a view, likewise
};

/// Options of sampling, and the start of the seed's random numbers (PCG32, O'Neill 2014). Value type; choosing does not
/// change it.
struct Sampler {
    SamplerOptions options{};
    std::uint64_t random_state = 0;  ///< before the number of position 0
};

/// Errors, `sampler` unchanged: bad_argument (a NaN or an infinity, a temperature below 0, a repeat_penalty not above 0, p
/// outside [0, 1], other penalties, biases or options outside theirs); unsupported (penalties and biases, or the samplers that
/// follow them, left out of this build).
[[nodiscard]] Status make_sampler(const SamplerOptions& options, Sampler& sampler) noexcept;

/// One candidate; sample's scratch is an array of these.
struct Candidate {
    float logit = 0;
    Token id = 0;
};

/// What the samplers that look at a whole text know of it.
struct SampledText {
    std::span<const Token> tokens{};  ///< all before the one to choose: repetitions are found in the last 8192
    std::uint32_t n_unbroken =
        0xffffffffu;               ///< of the last tokens, those behind a sequence breaker: no repetition is longer
    float* mirostat_mu = nullptr;  ///< Mirostat's bound, in bits, moved by each choice; null: it starts anew, 2 · tau
};

/// Chooses the token at position `pos` of a text. A seed has one random number for each position, so one seed gives one
/// text, however its tokens are computed: one by one, several at a time, or after a restored session.
///
/// A logit gets its bias first. Then repeat_penalty divides or multiplies it, and frequency_penalty · times +
/// presence_penalty is subtracted: each an operation of float32. What DRY takes comes last; it counts 64 tokens of a
/// repetition at most. top_n_sigma comes first of what leaves tokens out, then top_k, top_p, min_p, typical_p and XTC, all but
/// the first by probabilities at the temperature, each among those that are left.
/// Candidates stand by id until top-k or top-p orders them, logit descending, then id ascending. Their weights,
/// exp((logit - highest) / temperature), are summed as they stand, one by one in float32, and the first whose running sum
/// exceeds a random part of the total is chosen. So one seed gives one text on every machine.
///   pos      tokens of the text before this one; its random number is found in O(log pos)
///   logits   [vocab_size]  read only
///   recent   the tokens repeat_penalty applies to, once however often they come; ids beyond the vocabulary are skipped
///   counted  the tokens frequency_penalty and presence_penalty apply to, as often as they come; likewise
///   scratch  [vocab_size]  overwritten
///   allowed  [(vocab_size + 31) / 32]  bit id % 32 of word id / 32: whether a token may be chosen; empty: all may.
///            A forbidden token counts as one whose logit is -inf.
///   text     what DRY and Mirostat read; null: `recent` alone, and a bound that starts anew
/// Errors, `token` unchanged: bad_shape; bad_argument if no token is allowed, no logit is above -inf, one is NaN, or an
/// option is not what make_sampler accepts.
[[nodiscard]] Status sample(const Sampler& sampler, std::uint32_t pos, std::span<const float> logits,
                            std::span<const Token> recent, std::span<Candidate> scratch, Token& token,
                            std::span<const std::uint32_t> allowed = {}, std::span<const Token> counted = {},
                            const SampledText* text = nullptr) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
