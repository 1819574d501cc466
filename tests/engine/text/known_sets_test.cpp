// Masks over a vocabulary that is large enough for sets of places to be known, held against each token's own bytes.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "convert/tokenizers/random_vocabulary.h"
#include "fovea/constraint.h"
#include "host/grammar/grammar.h"

namespace fovea {
namespace {

constexpr std::uint32_t kTokens = 6000;

struct LargeVocabulary {
    std::vector<std::byte> section;
    Tokenizer tokenizer;
    std::vector<std::byte> index;

    explicit LargeVocabulary(const std::vector<std::string>& more = {}) {
        TokenizerSource source = random_vocabulary(kTokens);
        if (!more.empty()) source.merges.clear();  // they speak of the tokens that these replace
        for (std::uint32_t i = 0; i < more.size(); ++i) source.tokens.set(kTokens / 2 + i, more[i]);
        section = write_tokenizer_section(source);
        REQUIRE(open_tokenizer(section, tokenizer).ok());
        index = grammar::index_vocabulary(tokenizer);
    }
};

struct OneState {
    std::vector<std::uint64_t> memory;
    ConstraintState state;

    explicit OneState(const Constraint& constraint) : memory(constraint_state_bytes(constraint) / 8) {
        REQUIRE(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), state).ok());
    }
};

/// Holds masks along a text of tokens drawn from them against each token's own bytes.
void check_masks(const LargeVocabulary& v, const grammar::Grammar& grammar, int n_tokens) {
    std::mt19937 random(1);
    const std::vector<std::byte> form = grammar::compile(grammar, v.tokenizer, v.index);
    Constraint constraint;
    REQUIRE(open_constraint(v.tokenizer, form, v.index, constraint).ok());
    OneState text(constraint), next(constraint);
    for (int n = 0; n < n_tokens; ++n) {
        std::vector<std::uint32_t> mask((kTokens + 31) / 32, ~std::uint32_t{0});
        allow_tokens(text.state, mask);
        std::vector<Token> allowed;
        for (Token id = 0; id < kTokens; ++id) {
            const bool may = mask[id / 32] >> id % 32 & 1;
            REQUIRE(copy_state(text.state, next.state).ok());
            if (advance(next.state, id) != may)
                FAIL_CHECK("token " << id << " after " << n << " tokens: " << may << ": "
                                    << std::string(token_bytes(v.tokenizer, id)));
            if (may && !v.tokenizer.ends_text(id)) allowed.push_back(id);
        }
        if (allowed.empty()) break;
        REQUIRE(advance(text.state, allowed[random() % allowed.size()]));
    }
}

}  // namespace

TEST_CASE(
    "constraint: masks over many tokens are what each token's bytes say, however many ways there are to read a text") {
    const LargeVocabulary v;
    for (const char* pattern : {"([a-z]{1,30}[a-z ]{1,30}){1,50}", "(\\w{1,10}\\s?){1,10}", "(a|ab|abc|[a-z]+){2,40}!",
                                "((x|y)?[a-z]{2,5} ?){3,9}", "[a-zA-Z ]{0,300}[.?]",
                                "(([a-e]+|[c-h]+|[^ ]{1,3})[ -]){1,60}", "(.{1,40},){0,30}.*"}) {
        INFO(pattern);
        check_masks(v, grammar::read_regex(pattern), 25);
    }
}

TEST_CASE("constraint: the same of lists whose items differ, with tokens that end several items") {
    const LargeVocabulary v({R"(",")",     R"("a","b)", R"(a","a",")",    R"(b","b)",        R"(b","a","b")",
                             R"("])",      R"(a"])",    R"(["a)",         R"(["a","a")",     "ab",
                             "ba",         "aa",        R"(a"},{"n":")",  R"(a"},{"n":"a")", "],[",
                             R"("],["a")", R"(, "a")",  R"(b"],["b","b)", R"(", ")",         R"(a", "b)",
                             R"(b"})",     R"("a","a)", R"("a","b","c")"});
    for (
        const char* schema :
        {R"({"items":{"pattern":"^[ab]+$"},"uniqueItems":true})",
         R"({"items":{"items":{"pattern":"^[ab]+$"},"uniqueItems":true},"minItems":9})",
         R"({"items":{"properties":{"n":{"type":"string","pattern":"^[ab]+$"}},"required":["n"]},"uniqueItems":true})",
         R"({"items":{"type":"string"},"uniqueItems":true,"minItems":99})",
         R"({"anyOf":[{"items":{"pattern":"^[ab]+$"},"uniqueItems":true},{"items":{"enum":["a","b","ab"]},"minItems":9}]})",
         R"({"items":{"anyOf":[{"pattern":"^(a|b)+$"},{"pattern":"^b[ab]*$"}]},"uniqueItems":true,"minItems":9})"}) {
        INFO(schema);
        check_masks(v, grammar::read_json_schema(schema, {.compact = true}), 40);
        check_masks(v, grammar::read_json_schema(schema), 20);
    }
}

}  // namespace fovea
