// Constraints: with generators, with and without speculation; forms that are damaged, or of another vocabulary.
#include "fovea/constraint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/form_cases.h"
#include "tests/support/generator_cases.h"

namespace fovea::testing {
namespace {

/// The vocabulary of the small models of generator_cases.h.
const Vocabulary& vocabulary_of_models() {
    static const Vocabulary vocabulary("tokenizer_llama2.json", {2, 300, 500, 900});
    return vocabulary;
}

constexpr const char* kSchema =
    R"({"type":"object","properties":{"title":{"type":"string","maxLength":12},"description":{"enum":["short","long"]},)"
    R"("children":{"type":"array","items":{"$ref":"#"},"maxItems":2}},"required":["title","description"]})";

TEST_CASE("constraint: a generator's answers fit, whatever the model, and speculation and forced tokens change none") {
    const Form form(grammar::read_json_schema(kSchema, {.compact = true}), vocabulary_of_models());
    std::size_t n_complete = 0, n_forced = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const SmallModel& small = small_model(seed);
        std::vector<Written> all;
        for (const std::uint32_t n_proposed : {0u, 1u, 5u}) {
            SmallSession s(small.model, {});
            OneGenerator one(small.model, vocabulary_of_models().tokenizer(), s.session.cache(),
                             {.max_proposed = n_proposed});
            FormState state(form.constraint());
            GenerateOptions options{.sampler = {.temperature = 1.5f, .seed = seed}, .n_new = 120};
            options.filter = filter_of(state.state);
            options.speculation.n_proposed = n_proposed;
            options.speculation.always = seed % 2;
            const Token prompt[] = {20, 21, 22};
            all.push_back(written(one.generator, s.session.workspace(), prompt, options));
            const Written& w = all.back();
            CAPTURE(w.text);
            CHECK((w.finish == FinishReason::end_token || !can_end(state.state) || w.finish == FinishReason::length));
            if (w.finish == FinishReason::end_token) {
                CHECK(can_end(state.state));
                CHECK(fits(form, w.text));
                CHECK(nlohmann::json::accept(w.text));
                ++n_complete;
            }
            CHECK((n_proposed || w.figures.n_forced == 0));
            // Every token is from a pass of its own, or proposed, or forced.
            CHECK(w.figures.n_passes + w.figures.n_forced + w.figures.n_accepted + 1 >= w.figures.n_tokens);
            n_forced += w.figures.n_forced;
        }
        CHECK(all[1] == all[0]);
        CHECK(all[2] == all[0]);
    }
    CHECK(n_complete >= 9);
    CHECK(n_forced > 20);
}

TEST_CASE("constraint: a state forks, starts again, and takes tokens that are not those it would force") {
    const Form form(grammar::read_json_schema(kSchema, {.compact = true}), byte_level());
    FormState a(form.constraint()), b(form.constraint());
    const std::string text = R"({"title":"a","description":"long"})";
    Token ids[256];
    std::fill(std::begin(ids), std::end(ids), Tokenizer::kNoToken);
    for (Token id = 0; id < form.tokenizer().vocab_size(); ++id)
        if (const std::string_view bytes = token_text(form.tokenizer(), id); bytes.size() == 1)
            ids[static_cast<std::uint8_t>(bytes[0])] = id;
    for (std::size_t i = 0; i < text.size(); ++i) {
        CHECK(!can_end(a.state));
        if (i == text.size() / 2) REQUIRE(copy_state(a.state, b.state).ok());
        REQUIRE(advance(a.state, ids[static_cast<std::uint8_t>(text[i])]));
    }
    CHECK(must_end(a.state));
    CHECK(!advance(a.state, ids['}']));
    CHECK(must_end(a.state));
    CHECK(advance(a.state, 0));  // the end token
    for (std::size_t i = text.size() / 2; i < text.size(); ++i)
        REQUIRE(advance(b.state, ids[static_cast<std::uint8_t>(text[i])]));
    CHECK(must_end(b.state));
    restart(a.state);
    CHECK(!can_end(a.state));
    CHECK(advance(a.state, ids['{']));
    CHECK(!advance(a.state, form.tokenizer().vocab_size() + 5));
}

TEST_CASE("constraint: refusals name what was expected, and change nothing") {
    const Form form(grammar::read_regex("[ab]*"), byte_level());
    const Tokenizer& tokenizer = byte_level().tokenizer();
    const std::span<const std::byte> bytes = form.bytes(), index = byte_level().index;
    Constraint c;
    CHECK(open_constraint(Tokenizer{}, bytes, index, c).code == Code::bad_argument);
    CHECK(open_constraint(tokenizer, {}, index, c).code == Code::truncated);
    CHECK(open_constraint(tokenizer, bytes, {}, c).code == Code::section_missing);
    CHECK(open_constraint(tokenizer, bytes.first(bytes.size() - 4), index, c).code == Code::truncated);
    CHECK(open_constraint(tokenizer, bytes.subspan(1), index, c).code == Code::misaligned);
    CHECK(open_constraint(tokenizer, index, bytes, c).code == Code::bad_magic);
    CHECK(open_constraint(sentence_piece().tokenizer(), bytes, index, c).code == Code::session_mismatch);
    CHECK(open_constraint(sentence_piece().tokenizer(), bytes, sentence_piece().index, c).code ==
          Code::session_mismatch);
    const Vocabulary endless("tokenizer_qwen2.json", {});
    const auto other = grammar::compile(grammar::read_regex("a"), endless.tokenizer(), endless.index);
    CHECK(open_constraint(endless.tokenizer(), other, endless.index, c).code == Code::unsupported);
    CHECK(!c.valid());
    CHECK(constraint_state_bytes(c) == 0);
    ConstraintState state;
    std::vector<std::uint64_t> memory(constraint_state_bytes(form.constraint()) / 8);
    const auto all = std::as_writable_bytes(std::span(memory));
    CHECK(make_constraint_state(c, all, state).code == Code::bad_argument);
    CHECK(make_constraint_state(form.constraint(), all.first(all.size() - 1), state).code == Code::arena_too_small);
    CHECK(!state.valid());
    CHECK(make_constraint_state(form.constraint(), all, state).ok());
    // What is not made answers without harm.
    ConstraintState none;
    restart(none);
    CHECK(!advance(none, 1));
    CHECK(!can_end(none));
    CHECK(copy_state(none, state).code == Code::bad_argument);
    CHECK(!filter_of(none).allow);
}

TEST_CASE("constraint: a form with any byte changed is refused, or safe to run") {
    const Form form(grammar::read_json_schema(kSchema), byte_level());
    const Tokenizer& tokenizer = byte_level().tokenizer();
    std::mt19937 random(2);
    std::size_t n_opened = 0, n_refused = 0;
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::byte> bytes = form.bytes(), index = byte_level().index;
        std::vector<std::byte>& changed = i % 4 == 0 ? index : bytes;
        // Half of the changes to a form's front, where its states are.
        const std::size_t at = random() % (i % 2 ? std::min<std::size_t>(changed.size(), 4000) : changed.size());
        changed[at] ^= static_cast<std::byte>(1u << random() % 8);
        Constraint c;
        if (!open_constraint(tokenizer, bytes, index, c).ok()) {
            ++n_refused;
            continue;
        }
        ++n_opened;
        FormState s(c);
        for (int k = 0; k < 12; ++k) {
            const std::vector<std::uint32_t> mask = mask_of(s, tokenizer);
            std::vector<Token> allowed;
            for (Token id = 0; id < tokenizer.vocab_size(); ++id)
                if (has(mask, id)) allowed.push_back(id);
            if (allowed.empty()) break;
            (void)advance(s.state, allowed[random() % allowed.size()]);
            Token forced[8];
            (void)forced_tokens(s.state, forced);
        }
    }
    CHECK(n_opened > 100);
    CHECK(n_refused > 100);
}

TEST_CASE("constraint: the same bytes of a form again, and the plain bytes of a state on any machine") {
    const auto again = [] {
        return grammar::compile(grammar::read_json_schema(kSchema), byte_level().tokenizer(), byte_level().index);
    };
    CHECK(again() == again());
    const Form form(grammar::read_json_schema(kSchema), byte_level());
    std::uint32_t longest = 0;
    for (Token id = 0; id < byte_level().tokenizer().vocab_size(); ++id)
        if (!byte_level().tokenizer().is_special(id) && !byte_level().tokenizer().ends_text(id))
            longest = std::max(longest, static_cast<std::uint32_t>(token_text(byte_level().tokenizer(), id).size()));
    const auto up = [](std::uint64_t n) { return (n + 7) / 8 * 8; };
    const std::uint64_t n_frames = 4 * 64 + 64 + 8 * longest;
    CHECK(constraint_state_bytes(form.constraint()) == 320 + n_frames * 8 + up(n_frames * 2) +
                                                           up((3 * 64 + 16 * longest) * 4) + up((longest + 1) * 12) +
                                                           up((byte_level().tokenizer().vocab_size() + 31) / 32 * 4));
}

}  // namespace
}  // namespace fovea::testing
