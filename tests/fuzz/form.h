// What a grammar that is read has to stand: compiled for a small vocabulary, opened, and answered.
#pragma once
#include <vector>

#include "convert/grammar/grammar.h"
#include "convert/random_vocabulary.h"
#include "convert/tokenizer_section.h"
#include "fovea/constraint.h"
#include "fuzz.h"

namespace fovea::fuzz {

struct FormVocabulary {
    std::vector<std::byte> section = write_tokenizer_section(random_vocabulary(700));
    Tokenizer tokenizer;
    std::vector<std::byte> index;

    FormVocabulary() {
        promise(open_tokenizer(section, tokenizer).ok(), "the vocabulary opens");
        index = grammar::index_vocabulary(tokenizer);
    }
    static const FormVocabulary& get() {
        static const FormVocabulary vocabulary;
        return vocabulary;
    }
};

/// A text in a form that opened: with `sound` ones there is always a token that is allowed, and it is taken.
inline void draw(const Constraint& constraint, const Tokenizer& tokenizer, std::uint32_t seed, bool sound) {
    std::vector<std::uint64_t> memory(constraint_state_bytes(constraint) / 8);
    ConstraintState state;
    promise(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), state).ok(),
            "a state is made");
    std::vector<std::uint32_t> mask((tokenizer.vocab_size() + 31) / 32);
    for (int i = 0; i < 24; ++i) {
        std::fill(mask.begin(), mask.end(), 0xffffffffu);
        allow_tokens(state, mask);
        std::vector<Token> allowed;
        for (Token id = 0; id < tokenizer.vocab_size(); ++id)
            if (mask[id / 32] >> id % 32 & 1) allowed.push_back(id);
        promise(!sound || !allowed.empty(), "a token is allowed");
        if (allowed.empty()) return;
        seed = seed * 1664525u + 1013904223u;
        const Token token = allowed[(seed >> 8) % allowed.size()];
        Token forced[4];
        (void)forced_tokens(state, forced);
        const bool taken = advance(state, token);
        promise(!sound || taken, "what is allowed is taken");
        if (tokenizer.ends_text(token)) return;
    }
}

template<class Read>
void compile_and_draw(Read&& read) {
    const FormVocabulary& v = FormVocabulary::get();
    std::vector<std::byte> form;
    try {
        form = grammar::compile(read(), v.tokenizer, v.index);
    } catch (const grammar::GrammarError& error) {  // what a hostile grammar should get
        promise(std::string_view(error.what()).find('\n') == std::string_view::npos, "a refusal is one line");
        return;
    }
    Constraint constraint;
    promise(open_constraint(v.tokenizer, form, v.index, constraint).ok(), "a form that was compiled opens");
    for (std::uint32_t seed = 0; seed < 3; ++seed) draw(constraint, v.tokenizer, seed, true);
}

}  // namespace fovea::fuzz
