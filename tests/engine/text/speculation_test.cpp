// Proposals change nothing but the number of passes: for any options, with filters, on every instruction set.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "engine/cache/kv_cache.h"
#include "engine/text/generator_state.h"
#include "tests/support/generator_cases.h"
#include "tests/support/sanitized.h"

namespace fovea::testing {
namespace {

#if defined(FOVEA_EMULATED)
constexpr int kRounds = 20;
#else
constexpr int kRounds = 150;
#endif

/// A text's settings drawn at random. Moves nowhere: options refer to it.
struct Drawn {
    std::vector<Token> prompt;
    std::vector<std::string> stop;
    std::vector<std::string_view> stop_views;
    std::vector<Token> end_tokens, shown;
    GenerateOptions options;
    bool filtered = false;
    std::vector<LogitBias> biases{{1, 0.8f}, {2, -std::numeric_limits<float>::infinity()}};

    Drawn(std::mt19937& random, std::uint32_t vocab_size) {
        const auto pick = [&](auto... choices) {
            const std::common_type_t<decltype(choices)...> list[] = {choices...};
            return list[random() % sizeof...(choices)];
        };
        prompt.resize(1 + random() % 40);
        // Ids of bytes are the first ones, and come in tokens that repeat themselves.
        const std::uint32_t few = pick(4u, 30u, vocab_size);
        for (Token& token : prompt) token = pick(0u, 200u) % vocab_size + random() % few;
        for (Token& token : prompt) token %= vocab_size;
        options.sampler = {.temperature = pick(0.0f, 0.0f, 0.3f, 1.0f, 3.0f),
                           .top_k = pick(0u, 2u, 40u),
                           .top_p = pick(1.0f, 0.9f),
                           .repeat_penalty = pick(1.0f, 1.0f, 1.3f),
                           .seed = random(),
                           .frequency_penalty = pick(0.0f, 0.0f, 0.4f, -0.2f),
                           .presence_penalty = pick(0.0f, 0.0f, 1.5f),
                           .bias = std::span(biases).first(pick(0u, 0u, 2u))};
        options.n_counted = pick(0xffffffffu, 5u, 0u);
        options.counts_prompt = random() % 2 == 0;
        options.n_new = pick(0u, 1u, 5u, 40u, 200u);
        options.n_recent = pick(0u, 8u, 64u);
        options.show_special = pick(0, 1);
        for (Token token = 0; token < vocab_size; ++token)
            if (random() % 2) shown.push_back(token);
        options.shown = std::span(shown).first(pick(std::size_t{0}, shown.size()));
        filtered = random() % 3 == 0;
    }
    void stop_at(std::vector<std::string> strings) {
        stop = std::move(strings);
        stop_views.assign(stop.begin(), stop.end());
        options.stop = stop_views;
    }
    /// Sometimes tokens, mostly of the text.
    void draw_end_tokens(std::mt19937& random, const std::vector<Token>& tokens) {
        if (random() % 4 || tokens.empty()) return;
        end_tokens = {tokens[random() % tokens.size()], static_cast<Token>(random() % 300)};
        options.end_tokens = end_tokens;
    }
    /// Strings that the text has, in part across tokens, and some that it has not.
    void draw_stops(std::mt19937& random, const std::string& text) {
        std::vector<std::string> strings;
        const std::size_t n = random() % 4;
        for (std::size_t i = 0; i < n && !text.empty(); ++i) {
            std::size_t begin = random() % text.size(), end = std::min(text.size(), begin + 1 + random() % 9);
            const auto inside = [&](std::size_t at) { return at < text.size() && (text[at] & 0xc0) == 0x80; };
            while (inside(begin)) --begin;
            while (inside(end)) ++end;
            strings.push_back(text.substr(begin, end - begin) + (random() % 3 ? "" : "#"));
        }
        stop_at(strings);
    }
};

TEST_CASE("generator: the text of a plain loop, cut at stop strings, for any options, with and without proposals") {
    std::mt19937 random(5);
    const Tokenizer& tokenizer = tokenizer_of_bytes().tokenizer();
    std::uint32_t n_accepted = 0, n_refused = 0, n_stopped = 0, n_ended = 0;
    for (int round = 0; round < kRounds; ++round) {
        CAPTURE(round);
        const Model& model = small_model(random()).model;
        const std::uint32_t vocab_size = model.config().decoder.vocab_size, context = 60 + random() % 90;
        Drawn drawn(random, vocab_size);
        const Written whole = naive(model, drawn.prompt, drawn.options, drawn.filtered, context);
        drawn.draw_stops(random, whole.text);
        drawn.draw_end_tokens(random, whole.tokens);
        const Written want = naive(model, drawn.prompt, drawn.options, drawn.filtered, context);
        n_stopped += want.finish == FinishReason::stop_text;
        n_ended += want.finish == FinishReason::end_token;

        const auto names = model_isas();
        SmallSession s(model, {.max_kv_len = context, .max_batch = 1 + static_cast<std::uint32_t>(random() % 12)},
                       names[random() % names.size()]);
        SmallSession draft(small_model(random()).model, {});
        OneGenerator one(model, tokenizer, s.session.cache(), {.max_proposed = 9});
        for (const bool drafted : {false, true})
            for (const std::uint32_t n_proposed : {0u, 1u, 4u, 9u})
                for (const bool always : {false, true}) {
                    CAPTURE(drafted);
                    CAPTURE(n_proposed);
                    HashFilter filter;
                    GenerateOptions options = drawn.options;
                    if (drawn.filtered) options.filter = filter.filter();
                    options.speculation = {.n_proposed = n_proposed, .always = always};
                    if (drafted) options.speculation.draft = {draft.session.workspace(), draft.session.cache()};
                    const Written got = written(one.generator, s.session.workspace(), drawn.prompt, options, &filter);
                    CHECK(got.text == want.text);
                    CHECK(got.tokens == want.tokens);
                    CHECK(static_cast<int>(got.finish) == static_cast<int>(want.finish));
                    REQUIRE(got == want);
                    // The cache holds what it would hold without proposals.
                    const std::size_t n_text = drawn.prompt.size() + got.tokens.size();
                    CHECK(one.generator.tokens().size() == n_text);
                    if (got.finish == FinishReason::end_token || got.tokens.empty())
                        CHECK(s.session.kv_len() == n_text);
                    else if (got.finish != FinishReason::stop_text)  // there an end token may have followed
                        CHECK(s.session.kv_len() == n_text - 1);
                    n_accepted += got.figures.n_accepted;
                    n_refused += got.figures.n_proposed - got.figures.n_accepted;
                }
    }
    CHECK(n_accepted > 100);  // what is shown is shown of all kinds
    CHECK(n_refused > 100);
    CHECK(n_stopped > 10);
    CHECK(n_ended > 10);
}

/// A cache with a state of 64 bytes beside it, which nothing writes: what counts is where rewind arrives.
struct CacheWithState {
    AlignedBytes pages, arena;
    CachePool pool;
    Workspace workspace;
    Cache cache;

    CacheWithState(const Model& model, std::uint32_t context, std::uint32_t n_states) {
        const PoolLimits limits{.max_kv_len = context, .max_marks = 1, .n_states = n_states};
        PoolPlan pool_plan;
        Plan plan;
        REQUIRE(plan_pool(model.config(), limits, 64, pool_plan).ok());
        REQUIRE(make_workspace_plan(model.config(), {.max_batch = 12}, plan).ok());
        pages.resize(pool_plan.arena_bytes);
        arena.resize(plan.arena_bytes);
        REQUIRE(make_pool(model, limits, 64, pages, pool).ok());
        REQUIRE(make_workspace(model, {.max_batch = 12}, arena, workspace).ok());
        REQUIRE(make_cache(pool, cache).ok());
    }
};

/// What the generator writes while its caller sometimes computes the text so far itself, as a server does in pieces.
Written written_beside(Generator& generator, CacheWithState& own, std::span<const Token> prompt,
                       const GenerateOptions& options, std::mt19937& random) {
    REQUIRE(start(generator, prompt, options).ok());
    Written w;
    for (Piece piece; piece.finish == FinishReason::none;) {
        const std::span<const Token> text = generator.tokens();
        const std::uint32_t n_cached = own.cache.kv_len();
        if (n_cached + 1 < text.size() && random() % 2) {
            const auto n = static_cast<std::uint32_t>(random() % (text.size() - n_cached));
            const Step step{own.cache, text.subspan(n_cached, n), {}};
            if (n) REQUIRE(forward(own.workspace, {&step, 1}).ok());
        }
        REQUIRE(generate(generator, own.workspace, piece).ok());
        w.tokens.insert(w.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    }
    return w;
}

TEST_CASE("generator: where a cache has a state, refused proposals cost a pass and change nothing") {
    std::mt19937 random(6);
    const Tokenizer& tokenizer = tokenizer_of_bytes().tokenizer();
    std::uint32_t n_accepted = 0, n_refused = 0;
    for (int round = 0; round < kRounds / 3; ++round) {
        CAPTURE(round);
        const Model &model = small_model(random()).model, &draft_model = small_model(random()).model;
        const std::uint32_t context = 60 + random() % 90;
        Drawn drawn(random, model.config().decoder.vocab_size);
        const Written want = naive(model, drawn.prompt, drawn.options, drawn.filtered, context);
        CacheWithState own(model, context, 2), draft(draft_model, 150, 3);
        OneGenerator one(model, tokenizer, own.cache, {.max_proposed = 9});
        for (const bool drafted : {false, true})
            for (const std::uint32_t n_proposed : {0u, 1u, 9u})
                for (const bool always : {false, true}) {
                    HashFilter filter;
                    GenerateOptions options = drawn.options;
                    if (drawn.filtered) options.filter = filter.filter();
                    options.speculation = {.n_proposed = n_proposed, .always = always};
                    if (drafted) options.speculation.draft = {draft.workspace, draft.cache};
                    const Written got = written(one.generator, own.workspace, drawn.prompt, options, &filter);
                    REQUIRE(got == want);
                    CHECK(own.pool.n_free_states() + (own.cache.kv_len() != 0) == 2);  // no mark is left
                    CHECK(own.cache.kv_len() <= drawn.prompt.size() + got.tokens.size());
                    n_accepted += got.figures.n_accepted;
                    n_refused += got.figures.n_proposed - got.figures.n_accepted;
                    if (drawn.filtered) continue;
                    REQUIRE(written_beside(one.generator, own, drawn.prompt, options, random).tokens == want.tokens);
                }
        REQUIRE(end_cache(own.cache).ok());
        REQUIRE(end_cache(draft.cache).ok());
        CHECK(own.pool.n_free_states() == 2);
        CHECK(draft.pool.n_free_states() == 3);
    }
    CHECK(n_accepted > 100);
    CHECK(n_refused > 100);
}

TEST_CASE("generator: the same bits with proposals, for every instruction set, weight and cache type") {
    for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8, Type::q4})
        for (const char* isa : model_isas()) {
            CAPTURE(isa);
            CAPTURE(static_cast<int>(type));
            const SmallModel small(llama_config(), type, 4);
            const Type kv_type = type == Type::q8 || type == Type::q4 ? type : Type::f32;
            SmallSession s(small.model, {.n_threads = 2, .kv_type = kv_type}, isa);
            OneGenerator one(small.model, {}, s.session.cache(), {.max_proposed = 8});  // without a tokenizer
            for (const std::uint64_t seed : {1u, 2u, 3u}) {
                GenerateOptions options{.sampler = {.temperature = 0.7f, .top_k = 3, .seed = seed}};
                const auto prompt = some_tokens(30, small.model.config().decoder.vocab_size);
                const Written plain = written(one.generator, s.session.workspace(), prompt, options);
                options.speculation = {.n_proposed = 8, .always = true};
                const Written proposed = written(one.generator, s.session.workspace(), prompt, options);
                CHECK(plain == proposed);
                CHECK(plain.figures.n_passes + 1 == plain.tokens.size());
                CHECK(proposed.figures.n_passes + proposed.figures.n_accepted == plain.figures.n_passes);
                CHECK(plain.finish == FinishReason::context);
                CHECK(plain.text == "");
            }
        }
}

TEST_CASE("generator: a draft that is the model itself is always right") {
    const Model& model = small_model(1).model;
    SmallSession s(model, {}), draft(model, {});
    OneGenerator one(model, tokenizer_of_bytes().tokenizer(), s.session.cache(), {.max_proposed = 4});
    const auto prompt = some_tokens(20, model.config().decoder.vocab_size);
    GenerateOptions options{.n_new = 101};
    options.speculation = {
        .n_proposed = 4, .draft = {draft.session.workspace(), draft.session.cache()}, .always = true};
    for (int round = 0; round < 2; ++round) {  // the second from what both caches hold of it
        const Written got = written(one.generator, s.session.workspace(), prompt, options);
        CHECK(got == naive(model, prompt, {.n_new = 101}, false, 150));
        CHECK(got.figures.n_accepted == got.figures.n_proposed);
        CHECK(got.figures.n_passes == 20);
        CHECK(got.figures.n_draft_passes == 80);
        CHECK(got.figures.n_kept == (round ? 19 : 0));
    }
}

TEST_CASE("generator: what proposes may change while a text goes on") {
    const Model& model = small_model(1).model;
    SmallSession s(model, {}), draft(model, {}), other(small_model(2).model, {});
    OneGenerator one(model, tokenizer_of_bytes().tokenizer(), s.session.cache(), {.max_proposed = 4});
    const auto prompt = some_tokens(20, model.config().decoder.vocab_size);
    const Speculation ways[] = {
        {},
        {.n_proposed = 4, .draft = {draft.session.workspace(), draft.session.cache()}, .always = true},
        {.n_proposed = 0, .draft = {draft.session.workspace(), draft.session.cache()}},
        {.n_proposed = 2, .draft = {other.session.workspace(), other.session.cache()}, .always = true},
        {.n_proposed = 3, .always = true}};
    CHECK(speculate(one.generator, ways[1]).code == Code::bad_argument);  // no text
    REQUIRE(start(one.generator, prompt, {.n_new = 101}).ok());
    Written got;
    Workspace workspace = s.session.workspace();
    std::uint32_t n_before = 0;
    std::size_t pass = 0;
    for (Piece piece; piece.finish == FinishReason::none; ++pass) {
        const Speculation& way = ways[pass % std::size(ways)];
        REQUIRE(speculate(one.generator, way).ok());
        Step step;
        REQUIRE(next_step(one.generator, step).ok());
        if (pass) CHECK(step.tokens.size() <= 1 + way.n_proposed);
        CHECK(speculate(one.generator, ways[1]).code == Code::bad_argument);  // the step waits
        REQUIRE(forward(workspace, {&step, 1}).ok());
        REQUIRE(take(one.generator, piece).ok());
        got.text += piece.text;
        got.tokens.insert(got.tokens.end(), piece.tokens.begin(), piece.tokens.end());
        got.logits.insert(got.logits.end(), piece.logits.begin(), piece.logits.end());
        got.finish = piece.finish;
        const std::uint32_t n_accepted = one.generator.figures().n_accepted;
        if (pass && &way == &ways[1] && piece.finish == FinishReason::none) CHECK(n_accepted == n_before + 4);
        n_before = n_accepted;
    }
    CHECK(got == naive(model, prompt, {.n_new = 101}, false, 150));
    Speculation wrong{.n_proposed = 5};
    REQUIRE(start(one.generator, prompt, {.n_new = 3}).ok());
    CHECK(speculate(one.generator, wrong).code == Code::bad_argument);
    wrong = {.n_proposed = 1, .draft = {draft.session.workspace(), s.session.cache()}};
    CHECK(speculate(one.generator, wrong).code == Code::bad_argument);
}

TEST_CASE("generator: proposals that are wrong end by themselves, and right ones go on") {
    // Ticks of a machine on which every row costs a quarter of a pass.
    static std::uint64_t now = 0;
    const SmallModel small(llama_config(1, 32, 2, 1, 16, 48, 4000), Type::f32, 9);
    SmallSession s(small.model, {});
    OneGenerator one(small.model, {}, s.session.cache(), {.max_proposed = 8});
    Workspace workspace = s.session.workspace();
    const auto cost_of = [&](float temperature, bool clock) {
        GenerateOptions options{.sampler = {.temperature = temperature, .seed = 3}};
        options.speculation = {.n_proposed = 8, .row_cost = 0.25f, .clock = clock ? +[] { return now; } : nullptr};
        const Token prompt[] = {1, 2, 3, 4};
        REQUIRE(start(one.generator, prompt, options).ok());
        std::uint64_t ticks = 0;
        for (Piece piece; piece.finish == FinishReason::none;) {
            Step step;
            REQUIRE(next_step(one.generator, step).ok());
            REQUIRE(forward(workspace, {&step, 1}).ok());
            if (one.generator.tokens().size() > 4) ticks += 1000 + 250 * (step.tokens.size() - 1);
            now += 1000 + 250 * (step.tokens.size() - 1);
            REQUIRE(take(one.generator, piece).ok());
        }
        return static_cast<double>(ticks) / 1000 / (one.generator.figures().n_tokens - 1);
    };
    for (const bool clock : {false, true}) {
        CAPTURE(clock);
        CHECK(cost_of(30.0f, clock) < 1.03);  // nearly any token at any place
        CHECK(cost_of(0.0f, clock) < 0.5);    // a loop
    }
}

TEST_CASE("generator: the longest match of the last tokens, the latest of equals") {
    const auto match = [](std::vector<Token> text) {
        const Match m = find_match(text);
        return std::pair<std::uint32_t, std::uint32_t>(m.next, m.length);
    };
    using Pair = std::pair<std::uint32_t, std::uint32_t>;
    CHECK(match({}) == Pair{0, 0});
    CHECK(match({1}) == Pair{0, 0});
    CHECK(match({1, 2, 3}) == Pair{0, 0});
    CHECK(match({3, 1, 3, 2, 3}) == Pair{3, 1});
    CHECK(match({1, 2, 9, 2, 8, 1, 2}) == Pair{2, 2});
    CHECK(match({5, 5, 5, 5}) == Pair{3, 3});
    CHECK(match(std::vector<Token>(100, 5)) == Pair{99, 16});
    std::vector<Token> far(9000);
    for (std::size_t i = 0; i < far.size(); ++i) far[i] = static_cast<Token>(i);
    far.back() = 8998 - 8191 + 1;  // within reach, and not
    CHECK(match(far).second == 1);
    far.back() = 1;
    CHECK(match(far).second == 0);
    std::mt19937 random(8);
    for (int round = 0; round < 500; ++round) {
        std::vector<Token> text(2 + random() % 120);
        const std::uint32_t few = 1 + static_cast<std::uint32_t>(random() % 20);
        for (Token& token : text) token = static_cast<Token>(random() % few);
        Pair want{0, 0};
        for (std::size_t at = 0; at + 1 < text.size(); ++at) {
            std::uint32_t n = 0;
            while (n < 16 && n <= at && text[at - n] == text[text.size() - 1 - n]) ++n;
            if (n && n >= want.second) want = {static_cast<std::uint32_t>(at) + 1, n};
        }
        CHECK(match(text) == want);
    }
}

}  // namespace
}  // namespace fovea::testing
