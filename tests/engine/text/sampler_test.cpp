// From logits to the next token: against a plain full sort, against exact probabilities, and the same everywhere.
#include "fovea/sampler.h"

#include <doctest/doctest.h>
#include <fenv.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/kernels/kernels.h"

namespace {

using namespace fovea;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Sampler sampler_with(const SamplerOptions& options) {
    Sampler sampler;
    REQUIRE(make_sampler(options, sampler).ok());
    return sampler;
}

Token draw(const Sampler& sampler, const std::vector<float>& logits, const std::vector<Token>& recent = {},
           std::uint32_t pos = 0) {
    std::vector<Candidate> scratch(logits.size());
    Token token = Token(-1);
    REQUIRE(sample(sampler, pos, logits, recent, scratch, token).ok());
    return token;
}

/// How often each id comes in n draws.
std::vector<int> count(const SamplerOptions& options, const std::vector<float>& logits, int n,
                       const std::vector<Token>& recent = {}) {
    const Sampler sampler = sampler_with(options);
    std::vector<int> counts(logits.size());
    for (int i = 0; i < n; ++i) ++counts[draw(sampler, logits, recent, static_cast<std::uint32_t>(i))];
    return counts;
}

/// Whether counts of n draws fit the probabilities: each within five standard deviations, none where there is none.
bool fits(const std::vector<int>& counts, const std::vector<double>& probability, int n) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double p = probability[i], deviation = std::sqrt(n * p * (1 - p));
        if (p == 0 ? counts[i] != 0 : std::abs(counts[i] - n * p) > 5 * deviation) return false;
    }
    return true;
}

TEST_CASE("sampler: greedy takes the highest, the lowest id of equals") {
    const Sampler greedy = sampler_with({});
    CHECK(draw(greedy, {1, 3, 2}) == 1);
    CHECK(draw(greedy, {1, 3, 3}) == 1);
    CHECK(draw(greedy, {-kInf, -5}) == 1);
    CHECK(draw(greedy, {0, kInf, kInf}) == 1);
    CHECK(draw(greedy, {-0.0f, 0.0f}) == 0);
    CHECK(draw(greedy, {7}) == 0);
}

TEST_CASE("sampler: probabilities are those of softmax at the temperature") {
    const std::vector<float> logits{0.0f, std::log(2.0f), std::log(5.0f), -kInf, -1000.0f};
    CHECK(fits(count({.temperature = 1, .seed = 1}, logits, 20000), {0.125, 0.25, 0.625, 0, 0}, 20000));
    // Temperature 1/2 squares the ratios, 1 : 4 : 25.
    CHECK(fits(count({.temperature = 0.5f, .seed = 2}, logits, 20000), {1 / 30., 4 / 30., 25 / 30., 0, 0}, 20000));
    CHECK(fits(count({.temperature = 1, .seed = 3}, {kInf, 3, kInf}, 20000), {0.5, 0, 0.5}, 20000));
    // Hardly any temperature: the highest, however small the lead.
    CHECK(count({.temperature = 1e-40f, .seed = 4}, {1.0f, 1.0000001f}, 100)[1] == 100);
}

TEST_CASE("sampler: top-k, then top-p, then min-p") {
    const std::vector<float> logits{std::log(1.f), std::log(4.f), std::log(2.f), std::log(8.f), std::log(1.f)};
    const auto fit = [&](const SamplerOptions& options, const std::vector<double>& p) {
        return fits(count(options, logits, 20000), p, 20000);
    };
    CHECK(fit({.temperature = 1, .seed = 1}, {1 / 16., 4 / 16., 2 / 16., 8 / 16., 1 / 16.}));
    CHECK(fit({.temperature = 1, .top_k = 1, .seed = 2}, {0, 0, 0, 1, 0}));
    CHECK(fit({.temperature = 1, .top_k = 4, .seed = 3}, {1 / 15., 4 / 15., 2 / 15., 8 / 15., 0}));
    CHECK(fit({.temperature = 1, .top_k = 99, .seed = 4}, {1 / 16., 4 / 16., 2 / 16., 8 / 16., 1 / 16.}));
    CHECK(fit({.temperature = 1, .top_p = 0, .seed = 5}, {0, 0, 0, 1, 0}));
    CHECK(fit({.temperature = 1, .top_p = 0.4f, .seed = 6}, {0, 0, 0, 1, 0}));
    CHECK(fit({.temperature = 1, .top_p = 0.7f, .seed = 7}, {0, 4 / 12., 0, 8 / 12., 0}));
    // The first two have 12 parts, of which 8 are two thirds: top-p counts what top-k left.
    CHECK(fit({.temperature = 1, .top_k = 2, .top_p = 0.6f, .seed = 8}, {0, 0, 0, 1, 0}));
    CHECK(fit({.temperature = 1, .min_p = 0.2f, .seed = 9}, {0, 4 / 14., 2 / 14., 8 / 14., 0}));
    CHECK(fit({.temperature = 1, .min_p = 1, .seed = 10}, {0, 0, 0, 1, 0}));
    CHECK(fit({.temperature = 1, .top_p = 0.8f, .min_p = 0.4f, .seed = 11}, {0, 4 / 12., 0, 8 / 12., 0}));
}

TEST_CASE("sampler: repeated tokens lose, once each, whatever their sign") {
    const Sampler greedy = sampler_with({.repeat_penalty = 2});
    CHECK(draw(greedy, {4, 3, 1}) == 0);
    CHECK(draw(greedy, {4, 3, 1}, {0}) == 1);
    CHECK(draw(greedy, {4, 1.5f, 1}, {0, 0, 0}) == 0);  // halved once: 2
    CHECK(draw(greedy, {-1, -1.5f}, {0}) == 1);
    CHECK(draw(greedy, {4, 3}, {0, 7, Token(-1)}) == 1);  // ids that are none change nothing
    const std::vector<float> logits{2 * std::log(2.0f), 0};
    CHECK(fits(count({.temperature = 1, .repeat_penalty = 2, .seed = 1}, logits, 20000, {0}), {2 / 3., 1 / 3.}, 20000));
}

Token draw_counted(const SamplerOptions& options, const std::vector<float>& logits, const std::vector<Token>& recent,
                   const std::vector<Token>& counted, std::uint32_t pos = 0,
                   const std::vector<std::uint32_t>& allowed = {}) {
    std::vector<Candidate> scratch(logits.size());
    Token token = Token(-1);
    REQUIRE(sample(sampler_with(options), pos, logits, recent, scratch, token, allowed, counted).ok());
    return token;
}

TEST_CASE("sampler: what came is taken off a logit, once or for each time") {
    const auto greedy = [](const SamplerOptions& options, const std::vector<float>& logits,
                           const std::vector<Token>& counted) { return draw_counted(options, logits, {}, counted); };
    CHECK(greedy({.frequency_penalty = 1}, {4, 2.5f, 1}, {0}) == 0);
    CHECK(greedy({.frequency_penalty = 1}, {4, 2.5f, 1}, {0, 0}) == 1);
    CHECK(greedy({.presence_penalty = 1}, {4, 2.5f, 1}, {0, 0, 0, 0}) == 0);
    CHECK(greedy({.presence_penalty = 2}, {4, 2.5f, 1}, {0}) == 1);
    CHECK(greedy({.frequency_penalty = -1}, {4, 2.5f, 1}, {2, 2, 2, 2}) == 2);   // below 0: more likely
    CHECK(greedy({.frequency_penalty = 1}, {4, 2.5f}, {0, 7, Token(-1)}) == 0);  // ids that are none change nothing
    CHECK(greedy({.frequency_penalty = 1}, {kInf, 0}, {0, 0}) == 0);
    CHECK(greedy({}, {4, 2.5f}, {0, 0, 0}) == 0);
    // `recent` is for repeat_penalty alone.
    CHECK(draw_counted({.frequency_penalty = 9}, {4, 2.5f}, {0, 0}, {}) == 0);
}

TEST_CASE("sampler: a bias is added first, adds up, and forbids as -inf") {
    const auto greedy = [](const std::vector<LogitBias>& bias, float repeat_penalty, const std::vector<Token>& recent) {
        return draw_counted({.repeat_penalty = repeat_penalty, .bias = bias}, {4, 3, 1}, recent, {});
    };
    CHECK(greedy({{1, 1.5f}}, 1, {}) == 1);
    CHECK(greedy({{2, 2}, {2, 2}}, 1, {}) == 2);
    CHECK(greedy({{0, -kInf}}, 1, {}) == 1);
    CHECK(greedy({{0, -kInf}, {0, 9}}, 1, {}) == 1);
    CHECK(greedy({{7, 100}, {Token(-1), 100}}, 1, {}) == 0);
    CHECK(greedy({{0, 0.3f}, {1, 0.1f}}, 1.4f, {0}) == 1);  // 4.3 / 1.4 = 3.07 < 3.1; with the bias last 3.157
    std::vector<Candidate> scratch(2);
    Token token = 77;
    const std::vector<LogitBias> none{{0, -kInf}, {1, -kInf}};
    CHECK(sample(sampler_with({.bias = none}), 0, std::vector<float>{1, 2}, {}, scratch, token).code ==
          Code::bad_argument);
    CHECK(token == 77);
}

TEST_CASE("sampler: penalties and biases are as logits made by hand, for any of them") {
    std::mt19937 random(11);
    const auto number = [&](float most) { return (static_cast<float>(random() % 2001) / 1000 - 1) * most; };
    for (int round = 0; round < 500; ++round) {
        std::vector<float> logits(1 + random() % 300);
        for (float& logit : logits) logit = number(8);
        const auto some = [&] {
            std::vector<Token> ids(random() % 200);
            for (Token& id : ids) id = random() % (logits.size() + 5);
            return ids;
        };
        const std::vector<Token> recent = some(), counted = some();
        std::vector<LogitBias> biases(random() % 6);
        for (LogitBias& b : biases) b = {static_cast<Token>(random() % (logits.size() + 2)), number(3)};
        const SamplerOptions options{.temperature = round % 3 ? 0.9f : 0.0f,
                                     .repeat_penalty = round % 2 ? 1.3f : 1.0f,
                                     .seed = random(),
                                     .frequency_penalty = round % 5 ? number(1) : 0,
                                     .presence_penalty = round % 4 ? number(2) : 0,
                                     .bias = biases};
        std::vector<float> by_hand = logits;
        for (std::size_t id = 0; id < logits.size(); ++id) {
            const auto token = static_cast<Token>(id);
            for (const LogitBias& b : biases)
                if (b.id == token) by_hand[id] += b.bias;
            if (std::count(recent.begin(), recent.end(), token))
                by_hand[id] =
                    by_hand[id] > 0 ? by_hand[id] / options.repeat_penalty : by_hand[id] * options.repeat_penalty;
            if (const auto times = std::count(counted.begin(), counted.end(), token))
                by_hand[id] -= options.frequency_penalty * static_cast<float>(times) + options.presence_penalty;
        }
        CAPTURE(round);
        CHECK(draw_counted(options, logits, recent, counted, 5) ==
              draw_counted({.temperature = options.temperature, .seed = options.seed}, by_hand, {}, {}, 5));
        // A mask forbids before and after, whatever a bias says.
        std::vector<std::uint32_t> allowed((logits.size() + 31) / 32, 0x5555aaaau);
        allowed[0] |= 1;
        const Token token = draw_counted(options, logits, recent, counted, 5, allowed);
        CHECK((allowed[token / 32] >> token % 32 & 1) == 1);
    }
}

TEST_CASE("sampler: penalties and biases choose what NumPy's float32 chooses") {
    constexpr std::uint32_t kGolden = 2077860791u;  // tests/golden/make_penalized.py
    const std::vector<LogitBias> biases{{3, 2.5f}, {7, -kInf}, {3, -0.3f}, {99, 1}};
    const SamplerOptions options{
        .repeat_penalty = 1.2f, .frequency_penalty = 0.37f, .presence_penalty = -0.61f, .bias = biases};
    std::uint32_t hash = 2166136261u, noise = 1;
    std::vector<Token> text;
    for (int i = 0; i < 200; ++i) {
        std::vector<float> logits(50);
        for (float& logit : logits) {
            noise = noise * 1664525u + 1013904223u;
            logit = static_cast<float>(static_cast<std::int32_t>(noise) >> 8) * 0x1p-20f;
        }
        const std::vector<Token> recent(text.end() - std::min<std::ptrdiff_t>(12, std::ssize(text)), text.end());
        text.push_back(draw_counted(options, logits, recent, text));
        hash = (hash ^ text.back()) * 16777619u;
    }
    CHECK(hash == kGolden);
}

TEST_CASE("sampler: bad options change nothing") {
    const auto code = [](const SamplerOptions& options) {
        Sampler sampler = sampler_with({.seed = 5});
        const Sampler before = sampler;
        const Status status = make_sampler(options, sampler);
        CHECK(sampler.random_state == before.random_state);
        CHECK(sampler.options.seed == 5);
        return status.code;
    };
    for (const float bad : {-1.0f, kNaN, kInf, -kInf}) {
        CHECK(code({.temperature = bad}) == Code::bad_argument);
        CHECK(code({.top_p = bad}) == Code::bad_argument);
        CHECK(code({.min_p = bad}) == Code::bad_argument);
        CHECK(code({.repeat_penalty = bad}) == Code::bad_argument);
        if (bad == -1.0f) continue;
        CHECK(code({.frequency_penalty = bad}) == Code::bad_argument);
        CHECK(code({.presence_penalty = bad}) == Code::bad_argument);
        if (bad == -kInf) continue;
        const std::vector<LogitBias> biases{{0, 1}, {1, bad}};
        CHECK(code({.bias = biases}) == Code::bad_argument);
    }
    CHECK(code({.frequency_penalty = 1001}) == Code::bad_argument);
    CHECK(code({.presence_penalty = -1001}) == Code::bad_argument);
    CHECK(code({.top_p = 1.5f}) == Code::bad_argument);
    CHECK(code({.min_p = 1.5f}) == Code::bad_argument);
    CHECK(code({.repeat_penalty = 0}) == Code::bad_argument);
}

TEST_CASE("sampler: bad logits are refused and choose nothing") {
    for (const float temperature : {0.0f, 1.0f})
        for (const float penalty : {1.0f, 2.0f}) {
            Sampler sampler = sampler_with({.temperature = temperature, .repeat_penalty = penalty});
            const auto code = [&](std::vector<float> logits, std::size_t n_scratch) {
                std::vector<Candidate> scratch(n_scratch);
                Token token = 77;
                const Code result = sample(sampler, 0, logits, {}, scratch, token).code;
                CHECK(token == 77);
                return result;
            };
            CHECK(code({}, 0) == Code::bad_shape);
            CHECK(code({1, 2}, 1) == Code::bad_shape);
            CHECK(code({1, kNaN, 2}, 3) == Code::bad_argument);
            CHECK(code({kNaN}, 1) == Code::bad_argument);
            CHECK(code({-kInf, -kInf}, 2) == Code::bad_argument);
            sampler.options.min_p = 2;  // past make_sampler
            CHECK(code({1, 2}, 2) == Code::bad_argument);
        }
}

TEST_CASE("sampler: what a mask forbids is not chosen, and a mask that forbids all is refused") {
    const std::vector<float> logits{4, 3, 2, kNaN};
    std::vector<Candidate> scratch(4);
    for (const float temperature : {0.0f, 1.0f}) {
        const Sampler sampler = sampler_with({.temperature = temperature});
        const auto with = [&](std::vector<std::uint32_t> allowed, Token& token) {
            return sample(sampler, 0, logits, {}, scratch, token, allowed);
        };
        Token token = 77;
        for (const Token only : {0u, 1u, 2u}) {
            CHECK(with({1u << only}, token).ok());
            CHECK(token == only);
        }
        token = 77;
        CHECK(with({0xfffffff0u}, token).code == Code::bad_argument);  // bits past the vocabulary allow nothing
        CHECK(std::string(with({0}, token).what) == "allowed tokens at least");
        CHECK(with({1, 1}, token).code == Code::bad_shape);
        CHECK(with({8}, token).code == Code::bad_argument);  // the NaN
        CHECK(token == 77);
    }
}

// ---- the same as sorting everything --------------------------------------------------------------------------------

float weight(float logit, float highest, float temperature) {
    const float x = logit == highest ? 0.0f : (logit - highest) / temperature;
    float y;
    kernels_scalar.floats.unary[static_cast<int>(Unary::exp)](&x, 1, &y);
    return y;
}

/// The header's words, step by step, with a full sort. `uniform` is the random number that is drawn.
Token sort_and_draw(const SamplerOptions& o, std::vector<Candidate> kept, float uniform) {
    float highest = -kInf;
    for (const Candidate& c : kept) highest = std::max(highest, c.logit);
    const auto weigh = [&](const Candidate& c) { return weight(c.logit, highest, o.temperature); };
    const auto sum = [&] {
        float total = 0;
        for (const Candidate& c : kept) total += weigh(c);
        return total;
    };
    const auto order = [&] {
        std::stable_sort(kept.begin(), kept.end(), [](auto& a, auto& b) { return a.logit > b.logit; });
    };
    if (o.top_k && o.top_k < kept.size()) {
        order();
        kept.resize(o.top_k);
    }
    if (o.top_p < 1) {
        const float enough = o.top_p * sum();
        order();
        float reached = weigh(kept[0]);
        std::size_t n = 1;
        while (n < kept.size() && reached < enough) reached += weigh(kept[n++]);
        kept.resize(n);
    }
    std::erase_if(kept, [&](const Candidate& c) { return weigh(c) < o.min_p; });
    const float target = uniform * sum();
    float reached = 0;
    for (const Candidate& c : kept)
        if ((reached += weigh(c)) > target) return c.id;
    return kept.back().id;
}

TEST_CASE("sampler: the likeliest under any mask is that of a plain search, and a NaN counts where it may be chosen") {
    std::mt19937 random(5);
    for (const std::size_t n : {1u, 31u, 32u, 33u, 64u, 95u, 1000u})
        for (int density = 0; density <= 4; ++density)
            for (int round = 0; round < 20; ++round) {
                CAPTURE(n);
                CAPTURE(density);
                std::vector<float> logits(n);
                for (float& x : logits) x = static_cast<float>(random() % 50) - 25.0f;  // with equal ones
                if (round % 3 == 0) logits[random() % n] = kInf;
                if (round % 4 == 1) logits[random() % n] = -kInf;
                if (round % 5 == 4) logits[random() % n] = kNaN;
                std::vector<std::uint32_t> mask((n + 31) / 32);
                for (std::uint32_t& word : mask) {
                    word = density == 0 ? 0 : ~0u;
                    for (int i = 1; i < density; ++i) word &= random();
                    if (round % 2 && random() % 2) word = random() % 2 ? ~0u : 0u;
                }
                float best = -kInf;
                Token wanted = 0;
                bool any = false, nan = false;
                for (std::size_t id = 0; id < n; ++id) {
                    if (!(mask[id / 32] >> id % 32 & 1)) continue;
                    any = true;
                    nan |= logits[id] != logits[id];
                    if (logits[id] > best) best = logits[id], wanted = static_cast<Token>(id);
                }
                std::vector<Candidate> scratch(n);
                for (const float penalty : {1.0f, 1.5f}) {  // by itself, and among candidates
                    Sampler sampler;
                    REQUIRE(make_sampler({.repeat_penalty = penalty}, sampler).ok());
                    Token token = 12345;
                    const Status status = sample(sampler, 0, logits, {}, scratch, token, mask);
                    REQUIRE(status.ok() == (any && !nan && best > -kInf));
                    CHECK(token == (status.ok() ? wanted : 12345));
                    if (nan) CHECK(std::string(status.what) == "logits: one is NaN");
                }
            }
}

TEST_CASE("sampler: the same token as from a full sort, ties included") {
    std::mt19937 random(7);
    const auto pick = [&](auto... choices) {
        const std::common_type_t<decltype(choices)...> list[] = {choices...};
        return list[random() % sizeof...(choices)];
    };
    for (int round = 0; round < 2000; ++round) {
        std::vector<Candidate> candidates(1 + random() % 300);
        std::vector<float> logits;
        const float step = pick(0.001f, 0.25f, 2.0f, 30.0f);  // coarse steps give many ties, wide ones zero weights
        for (Candidate& c : candidates) {
            c = {static_cast<float>(static_cast<int>(random() % 64) - 32) * step, static_cast<Token>(logits.size())};
            logits.push_back(c.logit);
        }
        const SamplerOptions options{.temperature = pick(0.1f, 0.8f, 1.0f, 3.0f),
                                     .top_k = pick(0u, 0u, 1u, 5u, 40u, 1000u),
                                     .top_p = pick(1.0f, 1.0f, 0.95f, 0.5f, 0.01f, 0.0f),
                                     .min_p = pick(0.0f, 0.0f, 0.05f, 0.5f),
                                     .seed = random()};
        CAPTURE(round);
        const Sampler sampler = sampler_with(options);
        const std::uint32_t pos = random() % 3000;
        // PCG32 step by step up to the position, and its output function (O'Neill 2014, section 6.3), 24 bits of it.
        std::uint64_t s = sampler.random_state;
        for (std::uint32_t i = 0; i < pos; ++i) s = s * 6364136223846793005u + 1442695040888963407u;
        const auto mixed = static_cast<std::uint32_t>((s ^ (s >> 18)) >> 27);
        const float uniform = static_cast<float>(std::rotr(mixed, static_cast<int>(s >> 59)) >> 8) / 16777216.0f;
        REQUIRE(draw(sampler, logits, {}, pos) == sort_and_draw(options, candidates, uniform));
        // A mask is as logits of -inf, whatever the order of the checks.
        std::vector<std::uint32_t> allowed((logits.size() + 31) / 32);
        for (std::uint32_t& word : allowed) word = random() | random();
        allowed[0] |= 1;
        std::vector<float> masked = logits;
        for (std::size_t i = 0; i < masked.size(); ++i)
            if (!(allowed[i / 32] >> i % 32 & 1)) masked[i] = -kInf;
        std::vector<Candidate> scratch(logits.size());
        const std::vector<Token> recent{0, static_cast<Token>(random() % logits.size())};
        Token token = Token(-1);
        REQUIRE(sample(sampler, pos, logits, recent, scratch, token, allowed).ok());
        CHECK(token == draw(sampler, masked, recent, pos));
    }
}

TEST_CASE("sampler: one seed gives one text, on every machine and in any host's rounding mode") {
    const auto hash = [] {
        std::uint32_t h = 2166136261u, noise = 1;  // FNV-1a; logits from a linear congruence, exact everywhere
        const Sampler sampler =
            sampler_with({.temperature = 0.8f, .top_p = 0.95f, .repeat_penalty = 1.1f, .seed = 2024});
        std::vector<float> logits(1000);
        std::vector<Token> recent;
        for (int i = 0; i < 200; ++i) {
            for (float& logit : logits) {
                noise = noise * 1664525u + 1013904223u;
                logit = static_cast<float>(static_cast<std::int32_t>(noise) >> 8) * 0x1p-20f;  // 24 bits, from -8 to 8
            }
            recent.push_back(draw(sampler, logits, recent, static_cast<std::uint32_t>(i)));
            h = (h ^ recent.back()) * 16777619u;
        }
        return h;
    };
    constexpr std::uint32_t kGolden = 2294581290u;
    CHECK(hash() == kGolden);
    fenv_t saved;
    fegetenv(&saved);
    fesetround(FE_UPWARD);
    const std::uint32_t upward = hash();
    fesetenv(&saved);
    CHECK(upward == kGolden);
}

TEST_CASE("sampler: logits are read only, and nothing past scratch is touched") {
    std::vector<float> logits{3, 1, 2, 5};
    const std::vector<float> before = logits;
    std::vector<Candidate> scratch(5, Candidate{-123.0f, 99});
    const Sampler sampler = sampler_with({.temperature = 1, .top_k = 2, .repeat_penalty = 1.5f});
    const std::vector<Token> recent{3};
    Token token = 0;
    REQUIRE(sample(sampler, 0, logits, recent, std::span(scratch).first(4), token).ok());
    CHECK(logits == before);
    CHECK(scratch[4].logit == -123.0f);
    CHECK(scratch[4].id == 99);
}

}  // namespace
