// Beam search without a model: with as many beams as there are beginnings it finds the best of all texts; ties, limits, ends and
// what it refuses. Texts of models are in pairs_test.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "host/translate/beam_search.h"

using namespace fovea;

namespace {

constexpr std::uint32_t kVocab = 4, kMost = 4;
constexpr Token kEnd = 3;

/// Logits that depend on the whole text so far.
std::vector<float> logits_after(const std::vector<Token>& text, std::uint32_t seed) {
    std::uint32_t state = seed * 7919 + 17;
    for (const Token token : text) state = state * 131 + token + 1;
    std::mt19937 random(state);
    std::vector<float> logits(kVocab);
    for (float& logit : logits) logit = static_cast<float>(random() % 2000) / 500.0f;
    return logits;
}

struct Best {
    double score = -std::numeric_limits<double>::infinity();
    std::vector<Token> text;
};

/// The best of all texts behind `text`, one after the other.
void try_all(std::vector<Token>& text, double log, double penalty, std::uint32_t seed, Best& best) {
    const std::vector<float> logits = logits_after(text, seed);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    for (Token token = 0; token < kVocab; ++token) {
        const double now = log + static_cast<double>(logits[token]) - std::log(sum);
        text.push_back(token);
        const double score = now / std::pow(static_cast<double>(text.size()), penalty);
        if (token != kEnd && text.size() < kMost)
            try_all(text, now, penalty, seed, best);
        else if (score > best.score)
            best = {score, text};
        text.pop_back();
    }
}

/// Searches to the end over those logits; the rows' order is that of beams().
BeamSearch searched(const BeamOptions& options, std::uint32_t seed) {
    BeamSearch search(options);
    search.start(0, kMost);
    while (!search.done()) {
        std::vector<std::vector<float>> logits;
        for (std::size_t i = 0; i < search.beams().size(); ++i) {
            std::vector<Token> text;
            search.tokens_of(i, text);
            logits.push_back(logits_after(text, seed));
        }
        std::vector<BeamSearch::Row> rows;
        for (const auto& row : logits) rows.push_back({row, {}});
        REQUIRE(search.take(rows).ok());
    }
    return search;
}

BeamOptions options_of(std::uint32_t n_beams) { return {.n_beams = n_beams, .ends = {kEnd}, .most_tokens = kMost}; }

}  // namespace

TEST_CASE("beam search: with enough beams the best of all texts, whatever lengths are worth") {
    std::size_t n_greedy = 0;
    for (std::uint32_t seed = 0; seed < 40; ++seed)
        for (const float penalty : {-1.0f, 0.0f, 0.7f, 1.0f, 2.0f}) {
            CAPTURE(seed);
            CAPTURE(penalty);
            Best best;
            std::vector<Token> text, found, few;
            try_all(text, 0, static_cast<double>(penalty), seed, best);
            BeamOptions options = options_of(64);  // 3^3 beginnings
            options.length_penalty = penalty;
            options.early_stopping = EarlyStopping::never;
            const BeamSearch search = searched(options, seed);
            search.tokens_of(search.hypotheses()[0], found);
            if (best.text.back() == kEnd) best.text.pop_back();
            CHECK(found == best.text);
            CHECK(std::abs(static_cast<double>(search.hypotheses()[0].score) - best.score) < 1e-5);
            options.n_beams = 1;
            const BeamSearch narrow = searched(options, seed);
            narrow.tokens_of(narrow.hypotheses()[0], few);
            n_greedy += few == best.text;
        }
    CHECK(n_greedy < 150);  // of 200: one beam often misses it
}

TEST_CASE("beam search: at equal scores the earlier beam, then the smaller id") {
    BeamSearch search(options_of(3));
    search.start(0, kMost);
    const std::vector<float> same(kVocab, 0.5f);
    const BeamSearch::Row row{same, {}};
    REQUIRE(search.take(std::vector(3, row)).ok());
    REQUIRE(search.beams().size() == 3);
    for (std::uint32_t i = 0; i < 3; ++i) {
        CHECK(search.beams()[i].parent == 0);
        CHECK(search.beams()[i].token == i);
        CHECK(search.beams()[i].score == static_cast<float>(-std::log(4.0)));
    }
    REQUIRE(search.take(std::vector(3, row)).ok());
    for (std::uint32_t i = 0; i < 3; ++i) {
        CHECK(search.beams()[i].parent == 0);
        CHECK(search.beams()[i].token == i);
    }
}

TEST_CASE("beam search: forbidden tokens keep their share of the chances, unless these are renormalized") {
    const std::vector<float> logits = {0, 0, 0, 0};
    const std::vector<std::uint32_t> two = {0b0110};
    for (const bool renormalized : {false, true}) {
        BeamOptions options = options_of(2);
        options.renormalized = renormalized;
        BeamSearch search(options);
        search.start(0, kMost);
        REQUIRE(search.take(std::vector(2, BeamSearch::Row{logits, two})).ok());
        CHECK(search.beams()[0].token == 1);
        CHECK(search.beams()[1].token == 2);
        CHECK(search.beams()[0].score == static_cast<float>(-std::log(renormalized ? 2.0 : 4.0)));
    }
}

TEST_CASE("beam search: an end that must come costs nothing, and given tokens count") {
    BeamOptions options = options_of(2);
    options.length_penalty = 1;
    BeamSearch search(options);
    search.start(1, 3);
    const std::vector<float> logits = {1, 0, -2, -30};
    REQUIRE(search.take(std::vector(2, BeamSearch::Row{logits, {}})).ok());
    const float score = search.beams()[0].score;
    search.take_end();
    REQUIRE(search.done());
    const Hypothesis& best = search.hypotheses()[0];
    std::vector<Token> text;
    search.tokens_of(best, text);
    CHECK(text == std::vector<Token>{0});
    CHECK(best.ended);
    CHECK(best.score == score / 3);
}

TEST_CASE("beam search: where nothing more is allowed the whole texts are what there is") {
    BeamSearch search(options_of(2));
    search.start(0, kMost);
    const std::vector<float> logits = {0, 1, 2, 3};  // the likeliest is an end
    const std::vector<std::uint32_t> none = {0};
    REQUIRE(search.take(std::vector(2, BeamSearch::Row{logits, {}})).ok());
    REQUIRE(!search.done());
    REQUIRE(search.take(std::vector(2, BeamSearch::Row{logits, none})).ok());
    CHECK(search.done());
    REQUIRE(search.hypotheses()[0].is_text);
    std::vector<Token> text;
    search.tokens_of(search.hypotheses()[0], text);
    CHECK(text.empty());
    CHECK(!search.hypotheses()[1].is_text);
}

TEST_CASE("beam search: refuses rows that say nothing, and is as it was") {
    BeamSearch search(options_of(2));
    search.start(0, kMost);
    const std::vector<float> good = {0, 1, 2, 3};
    const std::vector<std::uint32_t> none = {0};
    const auto code_of = [&](const std::vector<float>& logits, std::span<const std::uint32_t> allowed = {}) {
        return search.take(std::vector(2, BeamSearch::Row{logits, allowed})).code;
    };
    CHECK(code_of({0, std::nanf(""), 1, 2}) == Code::bad_argument);
    CHECK(code_of({0, std::numeric_limits<float>::infinity(), 1, 2}) == Code::bad_argument);
    CHECK(code_of(std::vector<float>(4, -std::numeric_limits<float>::infinity())) == Code::bad_argument);
    CHECK(code_of(good, none) == Code::bad_argument);
    CHECK(search.take(std::vector(1, BeamSearch::Row{good, {}})).code == Code::bad_shape);
    CHECK(search.n_tokens() == 0);
    CHECK(code_of(good) == Code::ok);
    CHECK(search.n_tokens() == 1);
    search.start(2, 2);
    CHECK(search.done());
    CHECK(!search.hypotheses()[0].is_text);
}
