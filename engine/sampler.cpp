#include "fovea/sampler.h"

#include <limits>

#include "../platform/float_env.h"
#include "kernels/kernels.h"

namespace fovea {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- random numbers: PCG-XSH-RR with 64 bits of state (O'Neill 2014, section 6.3) ----------------------------------

std::uint32_t next_random(std::uint64_t& state) noexcept {
    constexpr std::uint64_t kMultiplier = 6364136223846793005u, kIncrement = 1442695040888963407u;
    const std::uint64_t old = state;
    state = old * kMultiplier + kIncrement;
    const auto mixed = static_cast<std::uint32_t>(((old >> 18) ^ old) >> 27);
    const auto turn = static_cast<std::uint32_t>(old >> 59);
    return (mixed >> turn) | (mixed << (-turn & 31));
}

/// In [0, 1), a multiple of 2^-24: every such float32 is equally likely, and 1 itself never comes.
float next_uniform(std::uint64_t& state) noexcept { return static_cast<float>(next_random(state) >> 8) * 0x1p-24f; }

// ---- the order of candidates ---------------------------------------------------------------------------------------

bool before(const Candidate& a, const Candidate& b) noexcept {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// Candidates in their order, sorted only as far as they are asked for: a vocabulary of 150,000 is not sorted to take
/// from it the few that a nucleus holds. A heap at the front gives the next one; those given stand at the back.
class Ranking {
public:
    explicit Ranking(std::span<Candidate> candidates) noexcept : all_(candidates), n_heap_(candidates.size()) {
        for (std::size_t i = n_heap_ / 2; i-- > 0;) sink(i);
    }

    /// The candidate with i before it. i < size of what was given.
    const Candidate& operator[](std::size_t i) noexcept {
        while (all_.size() - n_heap_ <= i) {
            const Candidate first = all_[0];
            all_[0] = all_[--n_heap_];
            all_[n_heap_] = first;
            sink(0);
        }
        return all_[all_.size() - 1 - i];
    }

private:
    void sink(std::size_t i) noexcept {
        const Candidate moving = all_[i];
        for (std::size_t child = 2 * i + 1; child < n_heap_; child = 2 * i + 1) {
            if (child + 1 < n_heap_ && before(all_[child + 1], all_[child])) ++child;
            if (!before(all_[child], moving)) break;
            all_[i] = all_[child];
            i = child;
        }
        all_[i] = moving;
    }

    std::span<Candidate> all_;
    std::size_t n_heap_;
};

// ---- weights -------------------------------------------------------------------------------------------------------

/// Unnormalised probabilities: exp((logit - highest) / temperature), 1 for the first.
struct Weights {
    float highest, temperature;
    void (*exp)(const float* x, std::size_t n, float* y) noexcept;

    [[nodiscard]] float exponent(float logit) const noexcept {
        return logit == highest ? 0.0f : (logit - highest) / temperature;  // equal first: both may be infinite
    }
    [[nodiscard]] float operator()(const Candidate& candidate) const noexcept {
        const float x = exponent(candidate.logit);
        float weight;
        exp(&x, 1, &weight);
        return weight;
    }
    /// Sum over candidates as they stand.
    [[nodiscard]] float sum(std::span<const Candidate> candidates) const noexcept {
        constexpr std::size_t kPiece = 256;
        float x[kPiece], weight[kPiece], total = 0;
        for (std::size_t begin = 0; begin < candidates.size(); begin += kPiece) {
            const std::size_t left = candidates.size() - begin, n = left < kPiece ? left : kPiece;
            for (std::size_t i = 0; i < n; ++i) x[i] = exponent(candidates[begin + i].logit);
            exp(x, n, weight);
            for (std::size_t i = 0; i < n; ++i) total += weight[i];
        }
        return total;
    }
};

/// Fills `scratch` with all candidates, those in `recent` made less likely.
std::span<Candidate> fill(std::span<Candidate> scratch, std::span<const float> logits, std::span<const Token> recent,
                          float penalty) noexcept {
    for (std::size_t i = 0; i < logits.size(); ++i) scratch[i] = {logits[i], static_cast<Token>(i)};
    if (penalty != 1.0f)
        for (const Token id : recent) {
            if (id >= logits.size()) continue;
            const float logit = logits[id];  // the original: a token that comes twice is penalised once
            scratch[id].logit = logit > 0 ? logit / penalty : logit * penalty;
        }
    return scratch.first(logits.size());
}

/// Moves the candidates whose weight is not zero to the front, in the order they stand in, and returns them.
std::span<Candidate> keep_possible(std::span<Candidate> candidates, const Weights& weights) noexcept {
    constexpr float kZero = -80.0f;  // below it our exp is 0
    std::size_t n = 0;
    for (const Candidate& c : candidates)
        if (weights.exponent(c.logit) >= kZero) candidates[n++] = c;
    return candidates.first(n);
}

/// Draws from what top-k, then top-p, then min-p leave of `candidates`.
Token draw(Sampler& sampler, std::span<Candidate> candidates, const Weights& weights) noexcept {
    const SamplerOptions& o = sampler.options;
    std::size_t n = candidates.size();
    float total = 0;
    const bool all = o.top_k == 0 || o.top_k >= n;
    if (all) total = weights.sum(candidates);  // by id, before the ranking moves them
    Ranking ranking(candidates);
    if (!all) {
        n = o.top_k;
        for (std::size_t i = 0; i < n; ++i) total += weights(ranking[i]);
    }
    if (o.top_p < 1.0f || o.min_p > 0.0f) {
        const float enough = o.top_p < 1.0f ? o.top_p * total : kInfinity;
        std::size_t kept = 0;
        for (total = 0; kept < n; ++kept) {
            const float weight = weights(ranking[kept]);
            if (kept && (total >= enough || weight < o.min_p)) break;
            total += weight;
        }
        n = kept;
    }
    const float target = next_uniform(sampler.random_state) * total;
    float sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += weights(ranking[i]);
        if (sum > target) return ranking[i].id;
    }
    return ranking[n - 1].id;  // the sums in another order came out lower
}

}  // namespace

Status make_sampler(const SamplerOptions& options, Sampler& sampler) noexcept {
    const SamplerOptions& o = options;
    const auto bad = [](const char* what) { return Status{Code::bad_argument, what, 0, 0}; };
    // Written so that NaN fails each.
    if (!(o.temperature >= 0 && o.temperature < kInfinity)) return bad("temperature: a finite number from 0");
    if (!(o.top_p >= 0 && o.top_p <= 1)) return bad("top_p: 0 to 1");
    if (!(o.min_p >= 0 && o.min_p <= 1)) return bad("min_p: 0 to 1");
    if (!(o.repeat_penalty > 0 && o.repeat_penalty < kInfinity)) return bad("repeat_penalty: a finite number above 0");
    sampler.options = options;
    sampler.random_state = 0;
    next_random(sampler.random_state);
    sampler.random_state += options.seed;
    next_random(sampler.random_state);
    return {};
}

Status sample(Sampler& sampler, std::span<const float> logits, std::span<const Token> recent,
              std::span<Candidate> scratch, Token& token) noexcept {
    const FloatEnv env;
    if (logits.empty()) return {Code::bad_shape, "logits", 1, 0};
    if (scratch.size() < logits.size())
        return {Code::bad_shape, "candidates of scratch", logits.size(), scratch.size()};
    const SamplerOptions& o = sampler.options;
    const bool plain = !(o.temperature > 0) && o.repeat_penalty == 1.0f;  // the highest logit: one pass, no candidates
    const auto candidates = plain ? std::span<Candidate>() : fill(scratch, logits, recent, o.repeat_penalty);
    Candidate best{-kInfinity, 0};
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const float logit = plain ? logits[i] : candidates[i].logit;
        if (logit != logit) return {Code::bad_argument, "logits: one is NaN", 0, 0};
        if (logit > best.logit) best = {logit, static_cast<Token>(i)};
    }
    if (best.logit == -kInfinity) return {Code::bad_argument, "logits: none is above -inf", 0, 0};

    token = best.id;
    if (o.temperature > 0) {
        const Weights weights{best.logit, o.temperature, find_kernels(nullptr)->unary[static_cast<int>(Unary::exp)]};
        token = draw(sampler, keep_possible(candidates, weights), weights);
    }
    return {};
}

}  // namespace fovea
