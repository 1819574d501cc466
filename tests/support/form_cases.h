// Forms over a small vocabulary, opened, with states in memory of exactly their size; and answers drawn from them.
#pragma once
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/text/constraint_run.h"
#include "fovea/constraint.h"
#include "host/grammar/grammar.h"
#include "tests/support/guarded.h"
#include "tests/support/opened_tokenizer.h"

namespace fovea::testing {

struct Vocabulary {
    OpenedTokenizer opened;
    std::vector<std::byte> index = grammar::index_vocabulary(opened.tokenizer());

    explicit Vocabulary(const std::string& name, std::vector<std::uint32_t> eos)
        : opened(golden_text(name), {.vocab_size = 1u << 20, .eos = std::move(eos)}) {}
    [[nodiscard]] const Tokenizer& tokenizer() const { return opened.tokenizer(); }
};

/// One of byte-level pairs, and one of SentencePiece's that knows bytes.
inline const Vocabulary& byte_level() {
    static const Vocabulary vocabulary("tokenizer_qwen2.json", {0});
    return vocabulary;
}
inline const Vocabulary& sentence_piece() {
    static const Vocabulary vocabulary("tokenizer_llama2.json", {2});
    return vocabulary;
}

class Form {
public:
    Form(const grammar::Grammar& grammar, const Vocabulary& vocabulary, const grammar::CompileOptions& options = {})
        : vocabulary_(vocabulary),
          bytes_(grammar::compile(grammar, vocabulary.tokenizer(), vocabulary.index, options)) {
        const Status status = open_constraint(vocabulary.tokenizer(), bytes_, vocabulary.index, constraint_);
        CAPTURE(StatusLine(status).c_str());
        REQUIRE(status.ok());
    }
    [[nodiscard]] const Constraint& constraint() const { return constraint_; }
    [[nodiscard]] const Tokenizer& tokenizer() const { return vocabulary_.tokenizer(); }
    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

private:
    const Vocabulary& vocabulary_;
    std::vector<std::byte> bytes_;
    Constraint constraint_;
};

/// A state between inaccessible pages.
struct FormState {
    Guarded<std::byte> memory;
    ConstraintState state;

    explicit FormState(const Constraint& constraint)
        : memory(static_cast<std::size_t>(constraint_state_bytes(constraint)), Flush::end, 8) {
        REQUIRE(make_constraint_state(constraint, {memory.data(), memory.size()}, state).ok());
    }
    [[nodiscard]] ConstraintRun& run() const { return *ConstraintAccess::run(state); }
};

[[nodiscard]] inline std::vector<std::uint32_t> mask_of(FormState& s, const Tokenizer& tokenizer) {
    std::vector<std::uint32_t> mask((tokenizer.vocab_size() + 31) / 32, 0xffffffffu);
    allow_tokens(s.state, mask);
    return mask;
}

[[nodiscard]] inline bool has(const std::vector<std::uint32_t>& mask, Token id) { return mask[id / 32] >> id % 32 & 1; }

/// Whether the whole of `text` fits, byte by byte.
[[nodiscard]] inline bool fits(const Form& form, std::string_view text) {
    FormState s(form.constraint());
    return (text.empty() || advance_bytes(s.run(), text)) && can_end(s.state);
}

/// The same for a JSON schema's form, with no space between its parts.
[[nodiscard]] inline bool allows(const char* schema, std::string_view text) {
    return fits(Form(grammar::read_json_schema(schema, {.compact = true}), byte_level()), text);
}

struct Answer {
    std::string text;
    bool complete = false;
    std::size_t n_tokens = 0;
};

/// Tokens drawn from the allowed ones; short ones and the end are made likelier; `look` sees each place.
template<class Look>
Answer draw(const Form& form, FormState& s, std::mt19937& random, std::size_t most, Look&& look) {
    const Tokenizer& tokenizer = form.tokenizer();
    Answer answer;
    for (; answer.n_tokens < most; ++answer.n_tokens) {
        const std::vector<std::uint32_t> mask = mask_of(s, tokenizer);
        look(mask);
        std::vector<Token> allowed;
        bool ends = false;
        for (Token id = 0; id < tokenizer.vocab_size(); ++id) {
            if (!has(mask, id)) continue;
            if (tokenizer.ends_text(id)) {
                ends = true;
                continue;
            }
            const std::string_view text = token_text(tokenizer, id);
            // Closing characters are likelier, so that answers end.
            const std::size_t weight = text.find_first_of("\"}]") != text.npos ? 12 : 1;
            allowed.insert(allowed.end(), weight, id);
        }
        CHECK(ends == can_end(s.state));
        CHECK(must_end(s.state) == (ends && allowed.empty()));
        REQUIRE((ends || !allowed.empty()));
        if (ends && (allowed.empty() || random() % 3 == 0)) {
            answer.complete = true;
            break;
        }
        const Token token = allowed[random() % allowed.size()];
        answer.text += token_text(tokenizer, token);
        REQUIRE(advance(s.state, token));
    }
    return answer;
}
inline Answer draw(const Form& form, FormState& s, std::mt19937& random, std::size_t most) {
    return draw(form, s, random, most, [](const auto&) {});
}

/// The line that refuses the grammar that read() gives; empty where it is taken.
template<class Read>
std::string refusal(Read&& read, const grammar::CompileOptions& options = {}) {
    try {
        (void)grammar::compile(read(), byte_level().tokenizer(), byte_level().index, options);
    } catch (const grammar::GrammarError& error) {
        return error.what();
    }
    return "";
}
inline std::string refused(const std::string& schema) {
    return refusal([&] { return grammar::read_json_schema(schema); });
}

}  // namespace fovea::testing
