// DRY, top-n-sigma, typical sampling, XTC and Mirostat beside tests/golden/make_sampling.py, and as parts of a text.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fovea/sampler.h"
#include "host/base/json.h"
#include "host/model/sampling_options.h"
#include "tests/support/opened_tokenizer.h"

namespace fovea {
namespace {

TextSampler options_of(const Json& named) {
    TextSampler options;
#define FOVEA_SAMPLER_REAL(field, ...) \
    if (named.contains(#field)) options.field = named[#field].get<decltype(options.field)>();
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
    return options;
}

Sampler sampler_with(SamplerOptions options, const MoreSamplers& more) {
    options.more = &more;
    Sampler sampler;
    REQUIRE(make_sampler(options, sampler).ok());
    return sampler;
}

Status check(const MoreSamplers& more) {
    Sampler sampler;
    return make_sampler({.more = &more}, sampler);
}

}  // namespace

TEST_CASE("samplers: the tokens of the reference") {
    const Json cases = Json::parse(testing::golden_text("sampling.json"));
    REQUIRE(cases.size() > 100);
    for (const Json& c : cases) {
        CAPTURE(c.dump());
        TextSampler options = options_of(c["options"]);
        options.seed = c["seed"].get<std::uint64_t>();
        Sampler sampler;
        REQUIRE(make_sampler(options.options(), sampler).ok());
        std::vector<float> logits;
        for (const Json& logit : c["logits"]) logits.push_back(logit.get<float>() / 64);
        const auto text = c["text"].get<std::vector<Token>>();
        auto mu = c["mu"].get<float>();
        const SampledText sampled{text, c["n_unbroken"].get<std::uint32_t>(), &mu};
        std::vector<Candidate> scratch(logits.size());
        Token token = 0;
        REQUIRE(sample(sampler, c["pos"].get<std::uint32_t>(), logits, {}, scratch, token, {}, {}, &sampled).ok());
        CHECK(token == c["token"].get<Token>());
        // A dozen roundings of numbers below 16.
        CHECK(std::fabs(mu - c["mu_after"].get<float>()) < 12 * 16 * 6e-8f);
    }
}

TEST_CASE("samplers: infinite logits, one candidate, no text") {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const std::vector<std::vector<float>> all = {{1}, {kInf, 1, kInf}, {-kInf, 2}, {3, 3, 3, 3}, {1e38f, -1e38f}};
    const MoreSamplers wild[] = {{.top_n_sigma = 1},
                                 {.typical_p = 1e-6f},
                                 {.typical_p = 0.5f},
                                 {.xtc_probability = 1, .xtc_threshold = 1e-9f},
                                 {.mirostat = 2, .mirostat_tau = 1e-6f},
                                 {.top_n_sigma = 1, .typical_p = 0.5f, .xtc_probability = 1},
                                 {.dry_multiplier = 1000, .dry_base = 100}};
    for (const std::vector<float>& logits : all)
        for (const MoreSamplers& more : wild) {
            const Sampler sampler = sampler_with({.temperature = &more == &wild[5] ? 1e-30f : 1}, more);
            std::vector<Candidate> scratch(logits.size());
            Token token = Token(-1);
            REQUIRE(sample(sampler, 5, logits, std::vector<Token>{0, 0, 0, 0, 0, 700}, scratch, token).ok());
            REQUIRE(token < logits.size());
            CHECK(logits[token] != -kInf);
        }
}

TEST_CASE("samplers: options outside their ranges are refused by name") {
    CHECK(std::string(check({.dry_base = 0.5f}).what) == "dry_base: 1 to 100");
    CHECK(std::string(check({.dry_multiplier = std::nanf("")}).what) == "dry_multiplier: 0 to 1000");
    CHECK(std::string(check({.mirostat = 1}).what) == "mirostat: 0 or 2");
    CHECK(std::string(check({.mirostat = 3}).what) == "mirostat: at most 2");
    CHECK(std::string(check({.xtc_threshold = 1.5f}).what) == "xtc_threshold: 0 to 1");
    CHECK(check({.top_n_sigma = -1}).ok());
}

TEST_CASE("samplers: a repetition ends under DRY") {
    // A model that always goes on as it did before: 0 1 2 3 0 1 2 3 ...
    const auto made = [](const MoreSamplers& more) {
        const Sampler sampler = sampler_with({}, more);
        std::vector<Token> text{0, 1, 2, 3};
        std::vector<Candidate> scratch(5);
        while (text.size() < 40) {
            std::vector<float> logits(5, 0.0f);
            logits[(text.back() + 1) % 4] = 4;
            const SampledText sampled{text};
            Token token = 0;
            REQUIRE(sample(sampler, 0, logits, {}, scratch, token, {}, {}, &sampled).ok());
            text.push_back(token);
        }
        return text;
    };
    const auto goes_round = [](const std::vector<Token>& text) {
        for (std::size_t i = 4; i < text.size(); ++i)
            if (text[i] != text[i - 4]) return false;
        return true;
    };
    CHECK(goes_round(made({})));
    CHECK(!goes_round(made({.dry_multiplier = 0.8f})));
    CHECK(goes_round(made({.dry_multiplier = 0.8f, .dry_allowed_length = 60})));
}

}  // namespace fovea
