// What a grammar that is read has to stand: compiled for a small vocabulary, opened, and answered.
#pragma once
#include <bit>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "convert/tokenizers/random_vocabulary.h"
#include "convert/tokenizers/tokenizer_section.h"
#include "fovea/constraint.h"
#include "fovea/host/tokens.h"
#include "host/grammar/grammar.h"
#include "tests/fuzz/fuzz.h"

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

/// The bits that are set, in order.
inline std::size_t count_bits(const std::vector<std::uint32_t>& mask) {
    std::size_t n = 0;
    for (const std::uint32_t word : mask) n += static_cast<std::size_t>(std::popcount(word));
    return n;
}
inline Token nth_bit(const std::vector<std::uint32_t>& mask, std::size_t n) {
    std::size_t at = 0;
    for (std::size_t here; n >= (here = static_cast<std::size_t>(std::popcount(mask[at]))); ++at) n -= here;
    std::uint32_t word = mask[at];
    while (n--) word &= word - 1;
    return static_cast<Token>(at * 32 + static_cast<std::size_t>(std::countr_zero(word)));
}

/// Bits of the tokens that close a part: likelier ones, so that answers end.
inline std::vector<std::uint32_t> closing_tokens(const Tokenizer& tokenizer) {
    std::vector<std::uint32_t> closing((tokenizer.vocab_size() + 31) / 32);
    for (Token id = 0; id < tokenizer.vocab_size(); ++id)
        if (token_bytes(tokenizer, id).find_first_of("\"}]") != std::string::npos) closing[id / 32] |= 1u << id % 32;
    return closing;
}
/// One of the tokens that a mask allows.
inline Token draw_token(const std::vector<std::uint32_t>& mask, const std::vector<std::uint32_t>& closing,
                        std::mt19937& random) {
    constexpr std::size_t kLikelier = 12;
    std::vector<std::uint32_t> closes = mask, others = mask;
    for (std::size_t i = 0; i < mask.size(); ++i) closes[i] &= closing[i], others[i] &= ~closing[i];
    const std::size_t n_closes = kLikelier * count_bits(closes), n = n_closes + count_bits(others);
    promise(n != 0, "a token is allowed");
    const std::size_t one = random() % n;
    return one < n_closes ? nth_bit(closes, one / kLikelier) : nth_bit(others, one - n_closes);
}

/// A text in a form that opened: with `sound` ones there is always a token that is allowed, and it is taken.
inline void draw(const Constraint& constraint, const Tokenizer& tokenizer, std::uint32_t seed, bool sound) {
    static std::vector<std::uint32_t> mask;
    std::vector<std::uint64_t> memory(constraint_state_bytes(constraint) / 8);
    ConstraintState state;
    promise(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), state).ok(),
            "a state is made");
    const std::uint32_t vocab_size = tokenizer.vocab_size();
    mask.resize((vocab_size + 31) / 32);
    for (int i = 0; i < 24; ++i) {
        std::fill(mask.begin(), mask.end(), 0xffffffffu);
        allow_tokens(state, mask);
        const std::size_t n_allowed = count_bits(mask);
        promise(!sound || n_allowed != 0, "a token is allowed");
        if (n_allowed == 0) return;
        seed = seed * 1664525u + 1013904223u;
        const Token token = nth_bit(mask, (seed >> 8) % n_allowed);
        promise(token < vocab_size, "what is allowed is a token");
        Token forced[4];
        (void)forced_tokens(state, forced);
        const bool taken = advance(state, token);
        promise(!sound || taken, "what is allowed is taken");
        if (tokenizer.ends_text(token)) return;
    }
}

/// Few, for most of a search would go into grammars that are refused for their size.
inline constexpr std::uint32_t kMostStates = 3000;

template<class Read>
void compile_and_draw(Read&& read) {
    const FormVocabulary& v = FormVocabulary::get();
    std::vector<std::byte> form;
    try {
        form = grammar::compile(read(), v.tokenizer, v.index, {.max_states = kMostStates});
    } catch (const grammar::GrammarError& error) {  // what a hostile grammar should get
        promise(std::string_view(error.what()).find('\n') == std::string_view::npos, "a refusal is one line");
        return;
    }
    Constraint constraint;
    promise(open_constraint(v.tokenizer, form, v.index, constraint).ok(), "a form that was compiled opens");
    for (std::uint32_t seed = 0; seed < 3; ++seed) draw(constraint, v.tokenizer, seed, true);
}

}  // namespace fovea::fuzz
