#include "engine/text/samplers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/format/parts.h"

namespace fovea {
namespace {

constexpr std::size_t kMostRepeated = 64;    // tokens of a repetition that are counted
constexpr std::size_t kMostLookBack = 8192;  // tokens of a text
constexpr float kMostTaken = 1e30f;          // of a logit, so that what is left is finite
constexpr float kLog2OfE = 1.44269504088896341f;
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// log2(x) of a finite x >= 1: x = 2^e·m with m from 1 to 2, and log2(m) = 2·artanh(s)/log(2) with s = (m − 1)/(m + 1) <= 1/3.
/// The series' rest is below 3e-8.
float log2_of(float x) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto e = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127);
    const float m = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f800000u), s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    float sum = 1.0f / 13;
    for (const float odd : {11.0f, 9.0f, 7.0f, 5.0f, 3.0f, 1.0f}) sum = sum * s2 + 1.0f / odd;
    return e + 2.0f * kLog2OfE * s * sum;
}

/// The surprise of a candidate beyond the likeliest's, in units of log(e), times the temperature.
float exponent_of(const Candidate& c, const Weights& weights) noexcept {
    return c.logit == weights.highest ? 0.0f : (c.logit - weights.highest) / weights.temperature;
}

/// How many of the text's last tokens stand before position `end` too, at most `most`.
std::size_t n_repeated(std::span<const Token> text, std::size_t end, std::size_t most) noexcept {
    std::size_t n = 0;
    while (n < most && n < end && text[end - 1 - n] == text[text.size() - 1 - n]) ++n;
    return n;
}

}  // namespace

MoreSamplers settled(const MoreSamplers* more) noexcept {
    if (!has(Part::samplers)) return {};
    MoreSamplers made = more ? *more : MoreSamplers{};
#define FOVEA_SAMPLER_REAL(...)
#define FOVEA_SAMPLER_MORE_REAL(field, neutral, ...) \
    if (made.field == 0 && neutral != 0) made.field = static_cast<float>(neutral);
#define FOVEA_SAMPLER_COUNT(...)
#define FOVEA_SAMPLER_MORE_COUNT(field, neutral, ...) \
    if (made.field == 0) made.field = neutral;
#include "fovea/sampler_options.inc"
    return made;
}

Status check_samplers(const MoreSamplers& more) noexcept {
    if (!has(Part::samplers)) return {};
    const auto bad = [](const char* what) { return Status{Code::bad_argument, what, 0, 0}; };
#define FOVEA_SAMPLER_REAL(...)
#define FOVEA_SAMPLER_MORE_REAL(field, neutral, least, most, ...)                      \
    if (more.field != 0 && !(more.field >= float{least} && more.field <= float{most})) \
        return bad(#field ": " #least " to " #most);
#define FOVEA_SAMPLER_COUNT(...)
#define FOVEA_SAMPLER_MORE_COUNT(field, neutral, most, ...) \
    if (more.field > most) return bad(#field ": at most " #most);
#include "fovea/sampler_options.inc"
    return more.mirostat == 1 ? bad("mirostat: 0 or 2") : Status{};
}

void penalize_repetitions(std::span<Candidate> candidates, const SampledText& text, const MoreSamplers& o) noexcept {
    if (!has(Part::samplers)) return;
    const std::span<const Token> tokens = text.tokens.last(std::min(text.tokens.size(), kMostLookBack));
    const std::size_t most = std::min<std::size_t>(text.n_unbroken, kMostRepeated);
    if (most < o.dry_allowed_length || tokens.empty()) return;
    // A candidate's id holds the longest repetition that it goes on with during this call.
    for (Candidate& candidate : candidates) candidate.id = 0;
    for (std::size_t end = 1; end < tokens.size(); ++end) {
        const Token next = tokens[end];
        if (next >= candidates.size() || candidates[next].id >= most) continue;
        const auto n = static_cast<Token>(n_repeated(tokens, end, most));
        candidates[next].id = std::max(candidates[next].id, n);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const Token n = std::exchange(candidates[i].id, static_cast<Token>(i));
        if (n == 0 || n < o.dry_allowed_length) continue;
        float taken = o.dry_multiplier;
        for (Token more = o.dry_allowed_length; more < n && taken < kMostTaken; ++more) taken *= o.dry_base;
        candidates[i].logit -= std::min(taken, kMostTaken);
    }
}

std::span<Candidate> keep_near_highest(std::span<Candidate> candidates, const Weights& weights, float n) noexcept {
    if (!has(Part::samplers)) return candidates;
    float count = 0, sum = 0, squares = 0;
    for (const Candidate& c : candidates)
        if (c.logit != kImpossible) count += 1, sum += c.logit - weights.highest;
    const float mean = sum / count;
    for (const Candidate& c : candidates)
        if (const float off = c.logit - weights.highest - mean; c.logit != kImpossible) squares += off * off;
    const float least = -n * std::sqrt(squares / count);
    const auto end = std::remove_if(candidates.begin(), candidates.end(),
                                    [&](const Candidate& c) { return c.logit - weights.highest < least; });
    return candidates.first(static_cast<std::size_t>(end - candidates.begin()));
}

std::span<Candidate> keep_typical(std::span<Candidate> candidates, const Weights& weights, float share) noexcept {
    if (!has(Part::samplers)) return candidates;
    // A surprise is log(total) − exponent, and the entropy log(total) − mean exponent: the logarithm cancels.
    const float total = weights.sum(candidates);
    float mean = 0;
    weights.each(candidates, [&](std::size_t i, float weight) {
        if (weight > 0) mean += weight / total * exponent_of(candidates[i], weights);
        return true;
    });
    const auto distance = [&](const Candidate& c) {
        const float off = exponent_of(c, weights) - mean;
        return off < 0 ? -off : off;
    };
    std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
        const float of_a = distance(a), of_b = distance(b);
        return of_a < of_b || (of_a == of_b && before(a, b));
    });
    float sum = 0;
    std::size_t n = 0;
    weights.each(candidates, [&](std::size_t i, float weight) {
        sum += weight;
        n = i + 1;
        return sum < share * total;
    });
    return candidates.first(n);
}

std::span<Candidate> leave_out_likely(std::span<Candidate> candidates, const Weights& weights,
                                      float threshold) noexcept {
    if (!has(Part::samplers)) return candidates;
    const float least = threshold * weights.sum(candidates);
    std::size_t last = candidates.size();  // of the likely ones, the least
    weights.each(candidates, [&](std::size_t i, float weight) {
        if (weight >= least && (last == candidates.size() || before(candidates[last], candidates[i]))) last = i;
        return true;
    });
    if (last == candidates.size()) return candidates;
    const Candidate stays = candidates[last];
    const auto end =
        std::remove_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return before(c, stays); });
    return candidates.first(static_cast<std::size_t>(end - candidates.begin()));
}

float mirostat_bound(const MoreSamplers& o, const SampledText& text) noexcept {
    if (!has(Part::samplers)) return {};
    return text.mirostat_mu ? *text.mirostat_mu : 2.0f * o.mirostat_tau;
}

std::span<Candidate> keep_unsurprising(std::span<Candidate> candidates, const Weights& weights, float bound) noexcept {
    if (!has(Part::samplers)) return candidates;
    const float exponent = -bound / kLog2OfE;
    float share = 0;
    weights.exp(&exponent, 1, &share);
    // At the bound 0 and below nothing but the likeliest may be left, whose weight is 1.
    return keep_heavy(candidates, weights, std::min(share * weights.sum(candidates), 1.0f));
}

void move_bound(const MoreSamplers& o, std::span<const Candidate> kept, const Weights& weights, const Candidate& chosen,
                const SampledText& text) noexcept {
    if (!has(Part::samplers)) return;
    if (!text.mirostat_mu) return;
    const float surprise = log2_of(weights.sum(kept)) - exponent_of(chosen, weights) * kLog2OfE;
    *text.mirostat_mu -= o.mirostat_eta * (surprise - o.mirostat_tau);
}

}  // namespace fovea
