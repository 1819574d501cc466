// Random walks of JSON schemas' forms, for a validator that is not ours (tests/host/grammar/schema_walks.py).
//
//     fovea_schema_walks N < SCHEMAS      a schema a line; a line of JSON for each: "refused" in its words, or "answers"
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "host/base/json.h"
#include "tests/fuzz/form.h"

namespace {

using namespace fovea;

constexpr std::size_t kMostTokens = 600;

/// One text of the form by tokens drawn from the allowed ones; empty if it has not ended.
std::string walk(const Constraint& constraint, const Tokenizer& tokenizer, std::mt19937& random) {
    static const std::vector<std::uint32_t> closing = fuzz::closing_tokens(tokenizer);
    std::vector<std::uint64_t> memory(constraint_state_bytes(constraint) / 8);
    ConstraintState state;
    fuzz::promise(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), state).ok(),
                  "a state is made");
    std::string text;
    for (std::size_t n = 0; n < kMostTokens; ++n) {
        std::vector<std::uint32_t> mask((tokenizer.vocab_size() + 31) / 32, 0xffffffffu);
        allow_tokens(state, mask);
        const Token token = fuzz::draw_token(mask, closing, random);
        if (tokenizer.ends_text(token) || (can_end(state) && random() % 3 == 0)) return text;
        text += token_bytes(tokenizer, token);
        fuzz::promise(advance(state, token), "what is allowed is taken");
    }
    return {};
}

Json walks(const std::string& schema, std::size_t n_walks) {
    const fuzz::FormVocabulary& v = fuzz::FormVocabulary::get();
    std::vector<std::byte> form;
    try {
        form = grammar::compile(grammar::read_json_schema(schema, {.compact = true}), v.tokenizer, v.index);
    } catch (const grammar::GrammarError& error) {
        return {{"refused", error.what()}};
    }
    Constraint constraint;
    fuzz::promise(open_constraint(v.tokenizer, form, v.index, constraint).ok(), "a form that was compiled opens");
    std::mt19937 random(1);
    Json answers = Json::array();
    for (std::size_t i = 0; i < n_walks; ++i)
        if (std::string text = walk(constraint, v.tokenizer, random); !text.empty()) answers.push_back(std::move(text));
    return {{"answers", answers}};
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t n_walks = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
    if (n_walks == 0) return std::fputs("schema_walks: expected a number of walks\n", stderr), 2;
    for (std::string schema; std::getline(std::cin, schema);)
        std::cout << fovea::json_text(walks(schema, n_walks), true) << std::endl;
}
