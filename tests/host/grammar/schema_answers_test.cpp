// 200 schemas, answers drawn at random: every complete one parses and validates, and every mask is what the automaton says of
// each token alone.
#include <doctest/doctest.h>

#include "host/base/json.h"
#include "tests/support/form_cases.h"
#include "tests/support/json_validator.h"
#include "tests/support/sanitized.h"

namespace fovea::testing {
namespace {

const Json& schemas() {
    static const Json all = Json::parse(golden_text("schemas.json"));
    return all;
}

TEST_CASE("schemas: every complete answer parses and validates, of 200 schemas") {
    REQUIRE(schemas().size() == 200);
    std::mt19937 random(7);
    std::size_t n_complete = 0, n_answers = 0, n_schemas = 0;
    for (const Json& schema : schemas()) {
        const std::string text = schema.dump();
        CAPTURE(text);
        const Form form(grammar::read_json_schema(text, {.compact = random() % 2 == 0}), byte_level());
        FormState s(form.constraint());
        std::size_t n = 0;
        for (int i = 0; i < (kSanitized ? 1 : 4); ++i) {
            restart(s.state);
            const Answer answer = draw(form, s, random, 400);
            ++n_answers;
            if (!answer.complete) continue;
            ++n;
            CAPTURE(answer.text);
            const Json value = Json::parse(answer.text, nullptr, false);
            REQUIRE(!value.is_discarded());
            REQUIRE(JsonValidator(schema).fits(value));
        }
        n_complete += n;
        n_schemas += n > 0;
    }
    CHECK(n_complete >= n_answers * 8 / 10);  // most end before 400 tokens
    CHECK(n_schemas >= (kSanitized ? 160 : 190));
}

/// The mask by its definition: each token's bytes from the present place.
std::vector<std::uint32_t> mask_by_tokens(const Form& form, FormState& here, FormState& there) {
    const Tokenizer& tokenizer = form.tokenizer();
    std::vector<std::uint32_t> mask((tokenizer.vocab_size() + 31) / 32);
    for (Token id = 0; id < tokenizer.vocab_size(); ++id) {
        REQUIRE(copy_state(here.state, there.state).ok());
        if (advance(there.state, id)) mask[id / 32] |= 1u << id % 32;
    }
    return mask;
}

TEST_CASE("masks: exactly the tokens that go on, with masks known in advance and without") {
    std::mt19937 random(11);
    for (std::size_t i = 0; i < schemas().size(); i += 9) {
        const std::string text = schemas()[i].dump();
        CAPTURE(text);
        const grammar::Grammar grammar = grammar::read_json_schema(text);
        const Vocabulary& vocabulary = i % 2 ? byte_level() : sentence_piece();
        const Form with(grammar, vocabulary), without(grammar, vocabulary, {.known_masks = false});
        FormState a(with.constraint()), b(without.constraint()), scratch(with.constraint());
        std::string said;
        std::size_t n = 0;
        for (int k = 0; k < 25 && !must_end(a.state); ++k) {
            CAPTURE(said);
            const std::vector<std::uint32_t> wanted = mask_by_tokens(with, a, scratch);
            make_mask(a.run(), false);
            make_mask(b.run(), false);
            REQUIRE(std::equal(wanted.begin(), wanted.end(), a.run().mask.begin()));
            REQUIRE(std::equal(wanted.begin(), wanted.end(), b.run().mask.begin()));
            std::vector<Token> allowed;
            for (Token id = 0; id < with.tokenizer().vocab_size(); ++id)
                if (has(wanted, id) && !with.tokenizer().ends_text(id)) allowed.push_back(id);
            REQUIRE(!allowed.empty());
            const Token token = allowed[random() % allowed.size()];
            said += token_text(with.tokenizer(), token);
            REQUIRE(advance(a.state, token));
            REQUIRE(advance(b.state, token));
            ++n;
        }
        CHECK(n > 0);
    }
}

TEST_CASE("masks: a forced token is one of those allowed, and what is forced after it follows") {
    std::mt19937 random(3);
    std::size_t n_forced = 0;
    for (std::size_t i = 0; i < schemas().size(); i += 7) {
        const Form form(grammar::read_json_schema(schemas()[i].dump(), {.compact = true}), byte_level());
        FormState s(form.constraint()), scratch(form.constraint());
        std::vector<Token> expected;
        (void)draw(form, s, random, 60, [&](const std::vector<std::uint32_t>& mask) {
            Token forced[16];
            const std::size_t n = forced_tokens(s.state, forced);
            REQUIRE(copy_state(s.state, scratch.state).ok());
            for (std::size_t k = 0; k < n; ++k, ++n_forced) {
                const std::vector<std::uint32_t> only = mask_of(scratch, form.tokenizer());
                std::vector<std::uint32_t> wanted(only.size());
                wanted[forced[k] / 32] = 1u << forced[k] % 32;
                REQUIRE(only == wanted);
                REQUIRE(advance(scratch.state, forced[k]));
            }
            std::size_t n_bits = 0;
            for (const std::uint32_t word : mask) n_bits += static_cast<std::size_t>(std::popcount(word));
            REQUIRE((n == 0 || n_bits == 1));
        });
    }
    CHECK(n_forced > 200);
}

}  // namespace
}  // namespace fovea::testing
