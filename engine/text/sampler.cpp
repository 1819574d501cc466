#include "fovea/sampler.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/format/parts.h"
#include "engine/kernels/kernels.h"
#include "engine/text/samplers.h"
#include "platform/float_env.h"

namespace fovea {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- random numbers: PCG-XSH-RR with 64 bits of state (O'Neill 2014, section 6.3) ----------------------------------

constexpr std::uint64_t kMultiplier = 6364136223846793005u, kIncrement = 1442695040888963407u;

constexpr std::uint64_t next_state(std::uint64_t state) noexcept { return state * kMultiplier + kIncrement; }

/// The state n steps on: n maps x -> multiplier·x + increment are one such map, and its powers are squared from one bit of
/// n to the next (O'Neill 2014, section 4.3.1).
std::uint64_t jump(std::uint64_t state, std::uint32_t n) noexcept {
    std::uint64_t multiplier = 1, increment = 0;
    for (std::uint64_t power = kMultiplier, added = kIncrement; n; n >>= 1) {
        if (n & 1) {
            multiplier *= power;
            increment = increment * power + added;
        }
        added *= power + 1;
        power *= power;
    }
    return state * multiplier + increment;
}

/// In [0, 1), a multiple of 2^-24: every such float32 is equally likely, and 1 itself never comes.
float uniform(std::uint64_t state) noexcept {
    const auto mixed = static_cast<std::uint32_t>(((state >> 18) ^ state) >> 27);
    const auto turn = static_cast<std::uint32_t>(state >> 59);
    const std::uint32_t random = (mixed >> turn) | (mixed << (-turn & 31));
    return static_cast<float>(random >> 8) * 0x1p-24f;
}

/// Whether the text so far and biases change no logit.
[[nodiscard]] bool is_neutral(const SamplerOptions& o) noexcept {
    return o.repeat_penalty == 1.0f &&
           (!has(Part::penalties) || (o.frequency_penalty == 0 && o.presence_penalty == 0 && o.bias.empty())) &&
           (!has(Part::samplers) || !o.more || o.more->dry_multiplier == 0);
}

// ---- candidates ----------------------------------------------------------------------------------------------------

/// The tokens that may be chosen; see sample.
struct Allowed {
    std::span<const std::uint32_t> mask;

    [[nodiscard]] bool all() const noexcept { return mask.empty(); }
    [[nodiscard]] bool has(std::size_t id) const noexcept { return all() || (mask[id / 32] >> id % 32 & 1); }
    [[nodiscard]] bool none(std::size_t n_ids) const noexcept {
        for (std::size_t id = 0; id < n_ids; ++id)
            if (has(id)) return false;
        return true;
    }
};

/// For vocabularies so large that writing candidates shows. Boards have small ones, and count the code.
constexpr bool kManyTokens = sizeof(void*) > 4;

/// The highest logit of the tokens that may be chosen, the first of equal ones; NaN if one of them is. A form leaves
/// most tokens or nearly none, so the mask is read by words. If most bits are set, a logit is compared first: it is
/// rarely higher, and only then its bit counts.
Candidate find_best(std::span<const float> logits, const Allowed& allowed) noexcept {
    Candidate best{-kInfinity, 0};
    const auto ends_at = [&](std::size_t id) {  // a NaN is no number to go on with
        best = {logits[id], static_cast<Token>(id)};
        return logits[id] != logits[id];
    };
    for (std::size_t first = 0; first < logits.size(); first += 32) {
        const std::size_t left = logits.size() - first;
        std::uint32_t word = allowed.all() ? ~0u : allowed.mask[first / 32];
        if (left < 32) word &= (1u << left) - 1;
        const std::uint32_t in_both = word & word >> 16;
        if (left >= 32 && (in_both & in_both >> 8 & 0xff)) {  // a bit of all four bytes: rare if few are set
            for (std::size_t id = first; id < first + 32; ++id)
                if (!(logits[id] <= best.logit) && word >> (id - first) & 1 && ends_at(id)) return best;
            continue;
        }
        for (; word; word &= word - 1) {
            const std::size_t id = first + static_cast<std::size_t>(std::countr_zero(word));
            if (!(logits[id] <= best.logit) && ends_at(id)) return best;
        }
    }
    return best;
}

[[nodiscard]] float repeated(float logit, float penalty) noexcept {
    return logit > 0 ? logit / penalty : logit * penalty;
}

/// If nothing but repeat_penalty is in this build.
void penalize_repeated(std::span<Candidate> candidates, std::span<const float> logits, std::span<const Token> recent,
                       float penalty) noexcept {
    for (const Token id : recent)
        if (id < candidates.size() && candidates[id].logit != -kInfinity)
            candidates[id].logit =
                repeated(logits[id], penalty);  // the original: one that comes twice is penalised once
}

/// During this call a candidate's id holds its token's counts: how often it is counted, whether it repeats.
void bias_and_penalize(std::span<Candidate> candidates, std::span<const Token> recent, std::span<const Token> counted,
                       const SamplerOptions& o) noexcept {
    constexpr Token kRepeats = 0x80000000u, kMostTimes = kRepeats - 1;
    for (Candidate& candidate : candidates) candidate.id = 0;
    for (const LogitBias& b : o.bias) {
        if (b.id >= candidates.size()) continue;
        float& logit = candidates[b.id].logit;
        logit = b.bias == -kInfinity ? -kInfinity : logit + b.bias;  // +inf - inf would be no number
    }
    for (const Token id : recent)
        if (id < candidates.size()) candidates[id].id |= kRepeats;
    for (const Token id : counted)
        if (id < candidates.size() && (candidates[id].id & kMostTimes) < kMostTimes) ++candidates[id].id;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        auto& [logit, past] = candidates[i];
        if (past & kRepeats && o.repeat_penalty != 1.0f) logit = repeated(logit, o.repeat_penalty);
        if (const Token times = past & kMostTimes)
            logit -= o.frequency_penalty * static_cast<float>(times) + o.presence_penalty;
        past = static_cast<Token>(i);
    }
}

/// Fills `scratch` with all candidates: biased, earlier tokens made less likely, forbidden ones impossible.
std::span<Candidate> fill(std::span<Candidate> scratch, std::span<const float> logits, std::span<const Token> recent,
                          std::span<const Token> counted, const SamplerOptions& o, const Allowed& allowed,
                          const SampledText& text) noexcept {
    const std::span<Candidate> candidates = scratch.first(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
        candidates[i] = {allowed.has(i) ? logits[i] : -kInfinity, static_cast<Token>(i)};
    if (!has(Part::penalties)) {
        if (o.repeat_penalty != 1.0f) penalize_repeated(candidates, logits, recent, o.repeat_penalty);
    } else if (!is_neutral(o)) {
        bias_and_penalize(candidates, recent, counted, o);
    }
    if (has(Part::samplers) && o.more && o.more->dry_multiplier > 0)
        penalize_repetitions(candidates, text, settled(o.more));
    return candidates;
}

/// The fewest, in order, whose weights reach `share` of all (Holtzman et al. 2020, section 3.1).
std::span<Candidate> keep_nucleus(std::span<Candidate> candidates, const Weights& weights, float share) noexcept {
    const float total = weights.sum(candidates);
    // Ordering is what costs, so candidates too light to matter are left out: together they weigh less than half of
    // what the nucleus leaves out. The rest stands in a heap and is ordered as far as the nucleus goes.
    candidates = keep_heavy(candidates, weights, 0.5f * (1.0f - share) * total / static_cast<float>(candidates.size()));
    const auto after = [](const Candidate& a, const Candidate& b) { return before(b, a); };
    std::make_heap(candidates.begin(), candidates.end(), after);
    std::size_t n = 0;
    float sum = 0;
    do {
        std::pop_heap(candidates.begin(), candidates.end() - static_cast<std::ptrdiff_t>(n), after);
        ++n;
        sum += weights.sum(candidates.last(n).first(1));
    } while (n < candidates.size() && sum < share * total);
    std::reverse(candidates.end() - static_cast<std::ptrdiff_t>(n), candidates.end());
    return candidates.last(n);
}

/// Draws one candidate, each as likely as it is heavy.
const Candidate& draw(std::span<const Candidate> candidates, const Weights& weights, float random) noexcept {
    const float target = random * weights.sum(candidates);
    float sum = 0;
    std::size_t chosen = 0;
    weights.each(candidates, [&](std::size_t i, float weight) {
        sum += weight;
        chosen = i;
        return sum <= target;
    });
    return candidates[chosen];
}

/// What is left of all that may be chosen, in the order in which it is drawn from.
std::span<Candidate> kept_of(std::span<Candidate> kept, const Weights& weights, const SamplerOptions& o,
                             std::uint64_t state, const SampledText& text) noexcept {
    const bool has_more = has(Part::samplers) && o.more;
    const MoreSamplers more = has_more ? settled(o.more) : MoreSamplers{};
    if (has_more && more.mirostat) return keep_unsurprising(kept, weights, mirostat_bound(more, text));
    if (has_more && more.top_n_sigma > 0) kept = keep_near_highest(kept, weights, more.top_n_sigma);
    if (o.top_k && o.top_k < kept.size()) {
        std::partial_sort(kept.begin(), kept.begin() + o.top_k, kept.end(), before);
        kept = kept.first(o.top_k);
    }
    if (o.top_p < 1) kept = keep_nucleus(kept, weights, o.top_p);
    if (o.min_p > 0) kept = keep_heavy(kept, weights, o.min_p);
    if (!has_more) return kept;
    if (more.typical_p < 1) kept = keep_typical(kept, weights, more.typical_p);
    // Another number of the position than its token is drawn by.
    if (more.xtc_probability > uniform(next_state(~state))) kept = leave_out_likely(kept, weights, more.xtc_threshold);
    return kept;
}

Status check(const SamplerOptions& o) noexcept {
    const auto bad = [](const char* what) { return Status{Code::bad_argument, what, 0, 0}; };
    // Written so that NaN fails each.
    if (!(o.temperature >= 0 && o.temperature < kInfinity)) return bad("temperature: a finite number from 0");
    if (!(o.top_p >= 0 && o.top_p <= 1)) return bad("top_p: 0 to 1");
    if (!(o.min_p >= 0 && o.min_p <= 1)) return bad("min_p: 0 to 1");
    if (!(o.repeat_penalty > 0 && o.repeat_penalty < kInfinity)) return bad("repeat_penalty: a finite number above 0");
    if (has(Part::samplers) && o.more)
        if (const Status status = check_samplers(*o.more); !status.ok()) return status;
    if (!has(Part::samplers) && has(Part::penalties) && o.more)
        return {Code::unsupported, "samplers: left out of this build", 0, 0};
    if (!has(Part::penalties)) {
        const bool none =
            o.frequency_penalty == 0 && o.presence_penalty == 0 && o.bias.empty() && (has(Part::samplers) || !o.more);
        return none ? Status{} : Status{Code::unsupported, "penalties: left out of this build", 0, 0};
    }
    constexpr float kMostPenalty = 1000, kMostBias = 1e30f;  // so that no sum of finite numbers is infinite
    const auto within = [](float x, float most) { return x >= -most && x <= most; };
    if (!within(o.frequency_penalty, kMostPenalty)) return bad("frequency_penalty: -1000 to 1000");
    if (!within(o.presence_penalty, kMostPenalty)) return bad("presence_penalty: -1000 to 1000");
    for (const LogitBias& b : o.bias)
        if (!within(b.bias, kMostBias) && b.bias != -kInfinity) return bad("bias: -1e30 to 1e30, or -inf");
    return {};
}

}  // namespace

Status make_sampler(const SamplerOptions& options, Sampler& sampler) noexcept {
    if (const Status status = check(options); !status.ok()) return status;
    sampler.options = options;
    sampler.random_state = next_state(next_state(0) + options.seed);
    return {};
}

Status sample(const Sampler& sampler, std::uint32_t pos, std::span<const float> logits, std::span<const Token> recent,
              std::span<Candidate> scratch, Token& token, std::span<const std::uint32_t> mask,
              std::span<const Token> counted, const SampledText* of) noexcept {
    const FloatEnv env;
    const SamplerOptions& o = sampler.options;
    if (const Status status = check(o); !status.ok()) return status;  // again: they are public
    if (logits.empty()) return {Code::bad_shape, "logits", 1, 0};
    if (scratch.size() < logits.size())
        return {Code::bad_shape, "candidates of scratch", logits.size(), scratch.size()};
    const std::size_t n_words = (logits.size() + 31) / 32;
    if (!mask.empty() && mask.size() != n_words)
        return {Code::bad_shape, "words of the mask of allowed tokens", n_words, mask.size()};
    const Allowed allowed{mask};
    const SampledText text = !has(Part::samplers) ? SampledText{} : of ? *of : SampledText{.tokens = recent};
    // The highest logit: one pass, no candidates.
    const bool plain = kManyTokens && o.temperature == 0 && is_neutral(o);
    const auto candidates = plain ? std::span<Candidate>() : fill(scratch, logits, recent, counted, o, allowed, text);
    Candidate best = plain ? find_best(logits, allowed) : Candidate{-kInfinity, 0};
    for (const Candidate& candidate : candidates) {
        if (candidate.logit <= best.logit) continue;
        best = candidate;
        if (best.logit != best.logit) break;
    }
    if (best.logit != best.logit) return {Code::bad_argument, "logits: one is NaN", 0, 0};
    if (best.logit == -kInfinity && allowed.none(logits.size()))
        return {Code::bad_argument, "allowed tokens at least", 1, 0};
    if (best.logit == -kInfinity) return {Code::bad_argument, "logits: none is above -inf", 0, 0};

    token = best.id;
    if (o.temperature > 0) {
        const Weights weights{best.logit, o.temperature,
                              find_kernels(nullptr)->floats.unary[static_cast<int>(Unary::exp)]};
        const std::uint64_t state = jump(sampler.random_state, pos);
        const std::span<Candidate> kept = kept_of(candidates, weights, o, state, text);
        const Candidate& chosen = draw(kept, weights, uniform(state));
        token = chosen.id;
        if (has(Part::samplers) && o.more && o.more->mirostat) move_bound(settled(o.more), kept, weights, chosen, text);
    }
    return {};
}

}  // namespace fovea
