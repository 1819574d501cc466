// Generators: the text is what a plain loop over forward and sample gives, cut where a stop string is complete; in any
// company, and with a Status for everything else.
#include "fovea/generator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/support/generator_cases.h"
#include "tests/support/small_pool.h"

namespace fovea::testing {
namespace {

TEST_CASE("generator: a stop string across tokens, bytes of characters, and what is held back for it") {
    const OpenedTokenizer& opened = tokenizer_of_bytes();
    const SmallModel& small = small_model(1);
    SmallSession s(small.model, {});
    OneGenerator one(small.model, opened.tokenizer(), s.session.cache());
    // A filter that leaves one token at each place makes the text.
    struct Script {
        std::vector<Token> tokens;
        std::size_t n_prompt = 0;
        static void allow(void* context, std::span<const Token> text, std::span<std::uint32_t> mask) {
            const auto& script = *static_cast<Script*>(context);
            const Token token = script.tokens[text.size() - script.n_prompt];
            std::fill(mask.begin(), mask.end(), 0u);
            mask[token / 32] |= 1u << token % 32;
        }
    };
    const auto token_of = [&](std::string_view bytes) {  // a token of these very bytes
        Token id = 0;
        while (id < opened.tokenizer().vocab_size() && token_bytes(opened.tokenizer(), id) != bytes) ++id;
        REQUIRE(id < opened.tokenizer().vocab_size());
        return id;
    };
    const auto pieces_of = [&](const std::vector<std::string>& spelled, std::vector<std::string_view> stop,
                               FinishReason& reason, std::vector<Token> end_tokens = {}) {
        Script script{.tokens = {}, .n_prompt = 1};
        for (const std::string& bytes : spelled) script.tokens.push_back(token_of(bytes));
        const Token prompt[] = {20};
        GenerateOptions options{
            .n_new = static_cast<std::uint32_t>(spelled.size()), .stop = stop, .end_tokens = end_tokens};
        options.filter = {Script::allow, nullptr, &script};
        REQUIRE(start(one.generator, prompt, options).ok());
        std::vector<std::string> pieces;
        Workspace workspace = s.session.workspace();
        for (Piece piece; piece.finish == FinishReason::none; pieces.emplace_back(piece.text), reason = piece.finish)
            REQUIRE(generate(one.generator, workspace, piece).ok());
        return pieces;
    };
    using Pieces = std::vector<std::string>;
    FinishReason reason{};
    CHECK(pieces_of({"a", "b", "c", "d"}, {"bc"}, reason) == Pieces{"a", "", ""});
    CHECK(reason == FinishReason::stop_text);
    CHECK(pieces_of({"a", "b", "a", "d"}, {"bc"}, reason) == Pieces{"a", "", "ba", "d"});
    CHECK(reason == FinishReason::length);
    CHECK(pieces_of({"a", "a", "b", "a", "a", "c"}, {"aabaac", "zz"}, reason) == Pieces{"", "", "", "", "", ""});
    CHECK(pieces_of({"a", "a", "b", "a", "b"}, {"abaa"}, reason) == Pieces{"", "a", "", "", "abab"});
    CHECK(pieces_of({"a", "b"}, {"abc"}, reason) == Pieces{"", "ab"});  // what was held comes at the end
    CHECK(pieces_of({"a", "b", "c"}, {"bc", "abc", "c"}, reason) == Pieces{"", "", ""});  // the longest that ends there
    CHECK(pieces_of({"a", "b", "c"}, {"abc", "b"}, reason) == Pieces{"", "a"});           // the first that is complete
    // The euro sign in three tokens of one byte each; alone its first two are no character.
    CHECK(pieces_of({"\xe2", "\x82", "\xac", "a"}, {}, reason) == Pieces{"", "", "\xe2\x82\xac", "a"});
    CHECK(pieces_of({"a", "\xe2", "\x82", "\xac"}, {"\xe2\x82\xac"}, reason) == Pieces{"a", "", "", ""});
    CHECK(reason == FinishReason::stop_text);
    CHECK(pieces_of({"a", "\xe2", "\x82"}, {}, reason) == Pieces{"a", "", "\xef\xbf\xbd"});
    CHECK(pieces_of({"a", "\xe2", "\x82"}, {"\xef\xbf\xbd"}, reason) == Pieces{"a", "", ""});
    CHECK(reason == FinishReason::stop_text);
    // A token of the caller's ends the text as the model's own do: it does not show, and what was held comes.
    CHECK(pieces_of({"a", "b", "d", "a"}, {"bc"}, reason, {token_of("c"), token_of("d")}) == Pieces{"a", "", "b"});
    CHECK(reason == FinishReason::end_token);
    CHECK(one.generator.tokens().size() == 3);
}

TEST_CASE("generator: many in one pass say what each says alone") {
    const Model& model = small_model(2).model;
    const Tokenizer& tokenizer = tokenizer_of_bytes().tokenizer();
    constexpr std::uint32_t kMany = 5;
    // Hardly more pages than the texts need: proposals take none that another's next token wants.
    SmallSteps many(model, {.max_batch = 16}, {.max_sequences = kMany, .n_pages = 2 * kMany});
    Workspace& workspace = many.workspace;
    Cache caches[kMany];
    std::vector<OneGenerator> all;
    std::vector<Written> want, got(kMany);
    for (std::uint32_t i = 0; i < kMany; ++i) {
        caches[i] = many.make();
        all.emplace_back(model, tokenizer, caches[i], GeneratorLimits{.max_tokens = 128, .max_proposed = 6});
        const auto prompt = some_tokens(3 + 7 * i, model.config().decoder.vocab_size);
        GenerateOptions options{.sampler = {.temperature = i % 2 ? 0.5f : 0.0f, .seed = i}};
        want.push_back(naive(model, prompt, options, false, 128));
        options.speculation = {.n_proposed = 6, .always = true};
        REQUIRE(start(all[i].generator, prompt, options).ok());
    }
    for (bool some = true; some;) {
        some = false;
        std::vector<Step> steps;
        std::vector<std::uint32_t> who;
        for (std::uint32_t i = 0; i < kMany; ++i) {
            if (got[i].finish != FinishReason::none) continue;
            steps.emplace_back();
            who.push_back(i);
            REQUIRE(next_step(all[i].generator, steps.back()).ok());
            Step again;
            REQUIRE(next_step(all[i].generator, again).ok());
            CHECK(again.tokens.data() == steps.back().tokens.data());
            CHECK(again.tokens.size() == steps.back().tokens.size());
        }
        if (steps.empty()) break;
        REQUIRE(forward(workspace, steps).ok());
        for (const std::uint32_t i : who) {
            Piece piece;
            REQUIRE(take(all[i].generator, piece).ok());
            got[i].text += piece.text;
            got[i].tokens.insert(got[i].tokens.end(), piece.tokens.begin(), piece.tokens.end());
            got[i].logits.insert(got[i].logits.end(), piece.logits.begin(), piece.logits.end());
            got[i].finish = piece.finish;
            some = true;
        }
    }
    for (std::uint32_t i = 0; i < kMany; ++i) CHECK(got[i] == want[i]);
}

TEST_CASE("generator: half of a text, saved and restored elsewhere, goes on the same, and shared tokens are kept") {
    const Model& model = small_model(2).model;
    const Tokenizer& tokenizer = tokenizer_of_bytes().tokenizer();
    const auto prompt = some_tokens(9, model.config().decoder.vocab_size);
    const GenerateOptions options{.sampler = {.temperature = 2, .seed = 11}, .n_new = 60};
    const Written whole = naive(model, prompt, options, false, 150);
    SmallSession first(model, {}), second(model, {});
    std::vector<Token> half(prompt);
    half.insert(half.end(), whole.tokens.begin(), whole.tokens.begin() + 30);
    REQUIRE(forward(first.session, half, {}).ok());
    std::vector<std::byte> saved(session_bytes(first.session));
    std::size_t n_saved = 0;
    REQUIRE(save_session(first.session, saved, n_saved).ok());
    REQUIRE(restore_session(second.session, saved).ok());
    OneGenerator one(model, tokenizer, second.session.cache());
    REQUIRE(resume(one.generator, half).ok());
    GenerateOptions rest = options;
    rest.n_new = 30;
    const Written other = written(one.generator, second.session.workspace(), half, rest);
    CHECK(other.tokens == std::vector<Token>(whole.tokens.begin() + 30, whole.tokens.end()));
    CHECK(other.figures.n_kept == half.size() - 1);
    // A prompt that shares its beginning keeps that.
    half[20] ^= 1;
    CHECK(written(one.generator, second.session.workspace(), half, rest).figures.n_kept == 20);
}

TEST_CASE("generator: exact memory") {
    const Model& model = small_model(1).model;
    const Tokenizer& tokenizer = tokenizer_of_bytes().tokenizer();
    SmallSession s(model, {.max_kv_len = 40});
    for (const GeneratorLimits& limits :
         {GeneratorLimits{}, {.max_tokens = 17, .max_stop_bytes = 0}, {.max_stop_bytes = 65535, .max_proposed = 256}}) {
        GeneratorPlan plan;
        REQUIRE(make_generator_plan(model, tokenizer, limits, plan).ok());
        CHECK(plan.limits.max_tokens == (limits.max_tokens ? limits.max_tokens : 150));
        AlignedBytes arena(plan.arena_bytes + 64, std::byte{0xee});
        const std::span<std::byte> bytes = arena;
        Generator generator;
        const auto code = [&](std::span<std::byte> place) {
            return make_generator(model, tokenizer, s.session.cache(), limits, place, generator).code;
        };
        CHECK(code(bytes.first(plan.arena_bytes - 1)) == Code::arena_too_small);
        CHECK(code(bytes.subspan(8, plan.arena_bytes)) == Code::misaligned);
        CHECK(!generator.valid());
        CHECK(make_generator(model, tokenizer, {}, limits, bytes, generator).code == Code::bad_argument);
        SmallSession other(small_model(2).model, {});
        CHECK(make_generator(model, tokenizer, other.session.cache(), limits, bytes, generator).code ==
              Code::session_mismatch);
        CHECK(code(bytes.first(plan.arena_bytes)) == Code::ok);
        CHECK(arena[plan.arena_bytes] == std::byte{0xee});
    }
    GeneratorPlan plan;
    const auto plan_code = [&](const GeneratorLimits& limits) {
        return make_generator_plan(model, tokenizer, limits, plan).code;
    };
    CHECK(plan_code({.max_tokens = 151}) == Code::bad_limits);
    CHECK(plan_code({.max_stop_bytes = 65536}) == Code::bad_limits);
    CHECK(plan_code({.max_proposed = 257}) == Code::bad_limits);
    CHECK(plan.arena_bytes == 0);
}

TEST_CASE("generator: what is out of its turn is refused") {
    const Model& model = small_model(1).model;
    SmallSession s(model, {.max_kv_len = 40});
    OneGenerator one(model, tokenizer_of_bytes().tokenizer(), s.session.cache());
    Generator none;
    Step step;
    Piece piece;
    Workspace workspace = s.session.workspace();
    const Token prompt[] = {1, 2, 3};
    CHECK(start(none, prompt, {}).code == Code::bad_argument);
    CHECK(resume(none, {}).code == Code::bad_argument);
    CHECK(next_step(none, step).code == Code::bad_argument);
    CHECK(take(none, piece).code == Code::bad_argument);
    CHECK(none.tokens().empty());
    CHECK(next_step(one.generator, step).code == Code::bad_argument);
    CHECK(generate(one.generator, workspace, piece).code == Code::bad_argument);

    REQUIRE(start(one.generator, prompt, {.n_new = 2}).ok());
    CHECK(take(one.generator, piece).code == Code::bad_argument);  // no step yet
    REQUIRE(next_step(one.generator, step).ok());
    CHECK(take(one.generator, piece).code == Code::bad_argument);  // not computed
    REQUIRE(forward(workspace, {&step, 1}).ok());
    CHECK(next_step(one.generator, step).code == Code::bad_argument);  // computed, not taken
    REQUIRE(take(one.generator, piece).ok());
    REQUIRE(generate(one.generator, workspace, piece).ok());
    CHECK(piece.finish == FinishReason::length);
    CHECK(generate(one.generator, workspace, piece).code == Code::bad_argument);  // ended
    CHECK(resume(one.generator, prompt).code == Code::bad_shape);
    REQUIRE(start(one.generator, prompt, {}).ok());
    Cache cache = s.session.cache();
    REQUIRE(end_cache(cache).ok());
    CHECK(generate(one.generator, workspace, piece).code == Code::bad_argument);
    CHECK(start(one.generator, prompt, {}).code == Code::bad_argument);
}

TEST_CASE("generator: a text that cannot be is refused, and the one before goes on") {
    const Model& model = small_model(1).model;
    SmallSession s(model, {.max_kv_len = 40});
    OneGenerator one(model, tokenizer_of_bytes().tokenizer(), s.session.cache(),
                     {.max_stop_bytes = 6, .max_proposed = 2});
    Workspace workspace = s.session.workspace();
    const Token prompt[] = {1, 2, 3}, wrong[] = {1, model.config().decoder.vocab_size}, many[41]{};
    REQUIRE(start(one.generator, prompt, {.n_new = 2, .speculation = {.n_proposed = 2}}).ok());
    const auto refuses = [&](std::span<const Token> tokens, const GenerateOptions& options) {
        const Code code = start(one.generator, tokens, options).code;
        CHECK(one.generator.tokens().size() == 3);
        CHECK(s.session.kv_len() == 0);
        return code;
    };
    CHECK(refuses({}, {}) == Code::bad_shape);
    CHECK(refuses(wrong, {}) == Code::token_out_of_range);
    CHECK(refuses(many, {}) == Code::context_full);
    CHECK(refuses(prompt, {.sampler = {.temperature = -1}}) == Code::bad_argument);
    const auto with_stops = [&](std::vector<std::string_view> stop) { return refuses(prompt, {.stop = stop}); };
    CHECK(with_stops({"abc", "abcd"}) == Code::buffer_too_small);
    CHECK(with_stops({""}) == Code::bad_argument);
    CHECK(with_stops({"\x82"}) == Code::bad_argument);
    CHECK(refuses(prompt, {.speculation = {.n_proposed = 3}}) == Code::bad_argument);
    CHECK(refuses(prompt, {.speculation = {.row_cost = -1}}) == Code::bad_argument);
    const SmallModel fewer(llama_config(), Type::f32);
    SmallSession draft(fewer.model, {});
    const auto with_draft = [&](Workspace w, Cache c) {
        GenerateOptions options;
        options.speculation = {.n_proposed = 1, .draft = {w, c}};
        return refuses(prompt, options);
    };
    CHECK(with_draft(draft.session.workspace(), draft.session.cache()) == Code::bad_argument);
    CHECK(with_draft(workspace, {}) == Code::bad_argument);
    CHECK(with_draft(workspace, s.session.cache()) == Code::bad_argument);
    CHECK(with_draft(workspace, draft.session.cache()) == Code::session_mismatch);
    Piece piece;
    REQUIRE(generate(one.generator, workspace, piece).ok());
    CHECK(piece.tokens.size() == 1);

    SmallSession lone(model, {});
    OneGenerator tokens_only(model, {}, lone.session.cache());
    const std::string_view stop[] = {"a"};
    CHECK(start(tokens_only.generator, prompt, {.stop = stop}).code == Code::section_missing);
}

TEST_CASE("generator: a filter that forbids everything gives a Status each time, and the text stays where it was") {
    const Model& model = small_model(1).model;
    SmallSession s(model, {.max_kv_len = 40});
    OneGenerator one(model, tokenizer_of_bytes().tokenizer(), s.session.cache());
    Workspace workspace = s.session.workspace();
    Step step;
    Piece piece;
    const Token prompt[] = {1, 2, 3};
    bool open = true;
    GenerateOptions options;
    options.filter = {[](void* context, std::span<const Token>, std::span<std::uint32_t> mask) {
                          if (!*static_cast<bool*>(context)) std::fill(mask.begin(), mask.end(), 0u);
                      },
                      nullptr, &open};
    REQUIRE(start(one.generator, prompt, options).ok());
    REQUIRE(generate(one.generator, workspace, piece).ok());
    open = false;
    REQUIRE(next_step(one.generator, step).ok());
    REQUIRE(forward(workspace, {&step, 1}).ok());
    for (int i = 0; i < 2; ++i) {
        const Status status = take(one.generator, piece);
        CHECK(status.code == Code::bad_argument);
        CHECK(std::string(status.what) == "allowed tokens at least");
    }
    CHECK(one.generator.tokens().size() == 4);
    open = true;
    REQUIRE(take(one.generator, piece).ok());
    CHECK(one.generator.tokens().size() == 5);
}

TEST_CASE("generator: a text that fills its cache ends for that reason") {
    const Model& model = small_model(1).model;
    SmallSession s(model, {.max_kv_len = 20});
    OneGenerator one(model, {}, s.session.cache());
    const auto prompt = some_tokens(15, model.config().decoder.vocab_size);
    CHECK(written(one.generator, s.session.workspace(), prompt, {}).tokens.size() == 5);
    CHECK(one.generator.finish() == FinishReason::context);
    CHECK(written(one.generator, s.session.workspace(), prompt, {.n_new = 5}).finish == FinishReason::length);
    const auto full = some_tokens(20, model.config().decoder.vocab_size);
    CHECK(written(one.generator, s.session.workspace(), full, {}).finish == FinishReason::context);
    CHECK(s.session.kv_len() == 20);
}

}  // namespace
}  // namespace fovea::testing
