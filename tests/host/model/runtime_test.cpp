// One opened model, and what is made of it in memory of its own.
#include "fovea/host/runtime.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "fovea/host/generation.h"
#include "host/base/status_error.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"

namespace {

using namespace fovea;
using namespace fovea::testing;

host::Opened open_demo() { return host::open_file(FOVEA_SOURCE_DIR "/tools/demo/demo.fovea", {}, "demo"); }

TEST_CASE("opened: a model's kind, and a refusal of what gives no logits") {
    CHECK(host::kind_of(llama_config()) == host::Kind::text);
    CHECK(host::kind_of(bert_config()) == host::Kind::vectors);
    Config pair = text_config(true);
    CHECK(host::kind_of(pair) == host::Kind::layers);
    pair.encoder.vocab_size = 71;
    CHECK(host::kind_of(pair) == host::Kind::translation);
    CHECK(host::kind_of(sound_config()) == host::Kind::speech);
    CHECK(host::kind_of(both_config(NormPlace::pre)) == host::Kind::layers);
    const AlignedBytes file = write_bytes(random_model(bert_config(), 1), {.type = Type::f32});
    const host::Opened opened = host::open_bytes(file, "m");
    CHECK_THROWS_WITH(opened.need_logits(), "m: model: expected one for logits, got one for vectors");
    CHECK_THROWS_WITH((void)opened.tokens("a"), "m: text: expected a model with a tokenizer, got one without");
}

TEST_CASE("opened: text becomes ids and text again, part by part too") {
    const host::Opened demo = open_demo();
    const std::string text = "turn on the lamp";
    const std::vector<Token> ids = demo.tokens(text, {.add_special = false});
    CHECK(demo.text(ids) == text);
    const std::span<const Token> all = ids;
    CHECK(demo.text(all.first(2), {.goes_on = true}) + demo.text(all.subspan(2), {.before = all.first(2)}) == text);
}

TEST_CASE("runtime: memory that there is not is a status and one line") {
    const host::Opened demo = open_demo();
    try {
        (void)host::take_arena(demo, std::numeric_limits<std::uint64_t>::max());
        FAIL("expected a refusal");
    } catch (const host::StatusError& error) {
        CHECK(error.status.code == Code::arena_too_small);
        CHECK(
            std::string(error.what()).starts_with("demo: memory: expected 18,446,744,073,709,551,615 bytes, got less"));
    }
}

TEST_CASE("runtime: a session's logits are a workspace's, and go on where it moves") {
    const host::Opened demo = open_demo();
    const std::vector<Token> tokens = demo.tokens("turn on the lamp");
    std::vector<float> alone(demo.config().decoder.vocab_size), beside(alone.size());
    host::Runtime<Session> session = start_session(demo, {.max_kv_len = 40});
    REQUIRE(forward(*session, std::span(tokens).first(2), {}).ok());
    host::Runtime<Session> moved = std::move(session);
    REQUIRE(forward(*moved, std::span(tokens).subspan(2), alone).ok());
    CHECK(moved.arena.size() == moved.plan.arena_bytes);
    host::Runtime<Workspace> workspace = start_workspace(demo, {.max_kv_len = 40});
    host::Runtime<CachePool> pool = start_pool(demo, {.max_kv_len = 40});
    const Step step{start_cache(demo, pool), tokens, beside};
    REQUIRE(forward(*workspace, {&step, 1}).ok());
    CHECK(alone == beside);
    CHECK_THROWS_AS((void)start_cache(demo, pool), host::StatusError);
}

TEST_CASE("generation: a draft changes no token") {
    const host::Opened demo = open_demo();
    const std::vector<Token> prompt = demo.tokens("turn on the lamp" + std::string(demo.model.info().prompt_suffix));
    std::string alone, drafted;
    host::Generation generation(demo, {.max_kv_len = 120}, {}, {.max_proposed = 4});
    (void)generation.generate(prompt, {.n_new = 40}, [&](std::string_view piece) { alone += piece; });
    generation.propose_by(demo, {.max_kv_len = 120}, {});
    GenerateOptions options{.n_new = 40};
    options.speculation = {.n_proposed = 4, .always = true};
    const host::Generated made =
        generation.generate(prompt, options, [&](std::string_view piece) { drafted += piece; });
    CHECK(alone == drafted);
    CHECK(made.figures.n_draft_passes > 0);
}

TEST_CASE("generation: a text goes on behind an image, which is computed once") {
    const host::Opened demo = open_demo();
    const std::uint32_t d_model = demo.config().decoder.d_model;
    const std::vector<Token> before = demo.tokens("turn on"), after = demo.tokens(" the lamp", {.add_special = false});
    host::PromptPart image{.kind = host::PromptPart::Kind::image};
    for (std::uint32_t i = 0; i < 6 * d_model; ++i) image.rows.push_back(static_cast<float>(i * 7 % 31) / 100 - 0.15f);
    image.spans = {{0, 6}};
    host::Prompt prompt(before);
    prompt.add(demo, image);
    prompt.add(demo, {.tokens = after});
    const auto n_before = static_cast<std::uint32_t>(before.size());
    CHECK(prompt.keys().size() == before.size() + 6 + after.size());
    CHECK(prompt.n_with_rows() == n_before + 6);
    CHECK(prompt.whole(n_before - 1) == n_before - 1);
    CHECK(prompt.whole(n_before + 3) == n_before);

    host::Runtime<Session> alone = start_session(demo, {.max_kv_len = 120});
    Workspace workspace = alone->workspace();
    std::vector<float> logits(demo.config().decoder.vocab_size);
    std::vector<Token> want;
    for (const Step& step :
         {Step{alone->cache(), before, {}}, Step{alone->cache(), {}, {}, {}, image.rows, {}, image.spans},
          Step{alone->cache(), after, logits}})
        REQUIRE(forward(workspace, {&step, 1}).ok());
    for (int i = 0; i < 8; ++i) {
        want.push_back(static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
        REQUIRE(forward(*alone, {&want.back(), 1}, logits).ok());
    }

    host::Generation generation(demo, {.max_kv_len = 120}, {});
    const auto tokens_of = [&](const host::Prompt& p, std::uint32_t n_kept) {
        std::vector<Token> tokens;
        const host::Generated made = generation.generate_until(p, {.n_new = 8}, [&](const Piece& piece) {
            tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
            return true;
        });
        CHECK(made.figures.n_kept == n_kept);
        return tokens;
    };
    const std::vector<Token> got = tokens_of(prompt, 0);
    want.resize(got.size());  // it may end before
    CHECK(got == want);
    CHECK(tokens_of(prompt, static_cast<std::uint32_t>(prompt.keys().size()) - 1) == want);
    host::Prompt other(before);
    image.rows[0] += 1;
    other.add(demo, image);
    CHECK_THROWS(other.add(demo, {}));
    other.add(demo, {.tokens = after});
    (void)tokens_of(other, n_before);
    CHECK(generation.tokens()[n_before] == other.keys()[n_before]);
    CHECK(tokens_of(prompt, n_before) == want);

    const AlignedBytes file = write_bytes(random_model(bert_config(), 1), {.type = Type::f32});
    host::Prompt refused;
    CHECK_THROWS_WITH(refused.add(host::open_bytes(file, "m"), image),
                      "prompt: expected text, got an image: m reads text alone");
    image.rows.resize(d_model + 1);
    CHECK_THROWS_AS(other.add(demo, image), host::Error);
}

}  // namespace
