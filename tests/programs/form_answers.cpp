// Which texts JSON schemas' forms take, and how long they need, beside other programs (bench/scripts/compare_forms.py).
//
//     fovea_form_answers < GROUPS          a line {"schema": ..., "texts": [...], "walks": N}; a line for each: "refused" in its words, or
//                                          "compiled" (ms), "taken" (of each text: true, or its bytes that fit), "answers" (of random
//                                          walks that ended) and "masks" (µs, each with the step to it)
//     fovea_form_answers --vocabulary      the tokens' bytes in hexadecimal digits, a token a line
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>

#include "host/base/json.h"
#include "tests/fuzz/form.h"

namespace {

using namespace fovea;

constexpr std::uint32_t kTokens = 150'000;
constexpr std::size_t kLongest = 64;      // bytes of the tokens that texts are cut into
constexpr std::size_t kMostTokens = 300;  // of a walk

/// CPU time of this thread in µs.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

struct Vocabulary {
    std::vector<std::byte> section = write_tokenizer_section(random_vocabulary(kTokens)), index;
    Tokenizer tokenizer;
    std::unordered_map<std::string, Token> ids;
    std::vector<std::uint32_t> closing;

    Vocabulary() {
        fuzz::promise(open_tokenizer(section, tokenizer).ok(), "the vocabulary opens");
        index = grammar::index_vocabulary(tokenizer);
        closing = fuzz::closing_tokens(tokenizer);
        for (Token id = 0; id < tokenizer.vocab_size(); ++id)
            if (!tokenizer.ends_text(id)) ids.emplace(token_bytes(tokenizer, id), id);
    }

    /// The longest token at each place, as the script cuts texts for others.
    std::vector<Token> tokens_of(const std::string& text) const {
        std::vector<Token> tokens;
        for (std::size_t at = 0, n; at < text.size(); at += n) {
            n = std::min(kLongest, text.size() - at);
            while (!ids.contains(text.substr(at, n))) --n;
            tokens.push_back(ids.at(text.substr(at, n)));
        }
        return tokens;
    }
};

/// A text's place in a form, with its mask; notes the time of each step with its mask.
class Reader {
public:
    Reader(const Vocabulary& v, const Constraint& constraint, Json& masks)
        : v_(v), masks_(masks), memory_(constraint_state_bytes(constraint) / 8), mask_((kTokens + 31) / 32) {
        fuzz::promise(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory_)), state_).ok(),
                      "a state is made");
        compute(now());
    }
    [[nodiscard]] bool allows(Token token) const { return mask_[token / 32] >> token % 32 & 1; }
    /// False if the mask does not allow the token.
    bool read(Token token) {
        const double began = now();
        fuzz::promise(advance(state_, token) == allows(token), "what a mask allows is taken, and nothing else");
        if (!allows(token)) return false;
        compute(began);
        return true;
    }
    [[nodiscard]] const std::vector<std::uint32_t>& mask() const { return mask_; }

private:
    void compute(double began) {
        std::fill(mask_.begin(), mask_.end(), 0xffffffffu);
        allow_tokens(state_, mask_);
        masks_.push_back(now() - began);
    }

    const Vocabulary& v_;
    Json& masks_;
    std::vector<std::uint64_t> memory_;
    std::vector<std::uint32_t> mask_;
    ConstraintState state_;
};

/// True if the form takes a text and may end behind it, else the bytes that it took.
Json takes(const Vocabulary& v, Reader reader, const std::string& text) {
    std::size_t n_bytes = 0;
    for (const Token token : v.tokens_of(text)) {
        if (!reader.read(token)) return n_bytes;
        n_bytes += token_bytes(v.tokenizer, token).size();
    }
    return reader.allows(kTokens - 1) ? Json(true) : Json(n_bytes);
}

/// One text of the form by tokens drawn from the allowed ones; nothing if it has not ended.
std::optional<std::string> walk(const Vocabulary& v, Reader reader, std::mt19937& random) {
    std::string text;
    for (std::size_t n = 0; n < kMostTokens; ++n) {
        const Token token = fuzz::draw_token(reader.mask(), v.closing, random);
        if (token == kTokens - 1 || (reader.allows(kTokens - 1) && random() % 3 == 0)) return text;
        text += token_bytes(v.tokenizer, token);
        reader.read(token);
    }
    return std::nullopt;
}

Json answer(const Vocabulary& v, const std::string& line) {
    const Json group = read_json(line);
    const std::string schema = json_text(group.at("schema"));
    const double began = now();
    std::vector<std::byte> form;
    try {
        form = grammar::compile(grammar::read_json_schema(schema), v.tokenizer, v.index);
    } catch (const grammar::GrammarError& error) {
        return {{"refused", error.what()}, {"compiled", (now() - began) / 1e3}};
    }
    const double compiled = (now() - began) / 1e3;
    Constraint constraint;
    fuzz::promise(open_constraint(v.tokenizer, form, v.index, constraint).ok(), "a form that was compiled opens");
    Json taken = Json::array(), masks = Json::array();
    Json answers = Json::array();
    for (const Json& text : group.at("texts"))
        taken.push_back(takes(v, Reader(v, constraint, masks), text.get<std::string>()));
    std::mt19937 random(1);
    for (int i = 0; i < group.value("walks", 0); ++i)
        if (auto text = walk(v, Reader(v, constraint, masks), random)) answers.push_back(*text);
    return {{"compiled", compiled}, {"bytes", form.size()}, {"taken", taken}, {"answers", answers}, {"masks", masks}};
}

}  // namespace

int main(int argc, char** argv) {
    const Vocabulary v;
    if (argc == 2 && std::string(argv[1]) == "--vocabulary") {
        for (Token id = 0; id < v.tokenizer.vocab_size(); ++id) {
            for (const char c : token_bytes(v.tokenizer, id)) std::printf("%02x", static_cast<unsigned char>(c));
            std::puts("");
        }
        return 0;
    }
    if (argc != 1) return std::fputs("form_answers: expected no argument or --vocabulary\n", stderr), 2;
    for (std::string line; std::getline(std::cin, line);) std::cout << json_text(answer(v, line), true) << std::endl;
}
