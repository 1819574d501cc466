// Generators in memory of exactly their size, and the plain loop over forward and sample that says what they must write.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fovea/generator.h"
#include "tests/support/guarded.h"
#include "tests/support/opened_tokenizer.h"
#include "tests/support/small_models.h"

namespace fovea::testing {
inline const OpenedTokenizer& tokenizer_of_bytes() {
    static const OpenedTokenizer opened(golden_text("tokenizer_llama2.json"),
                                        {.vocab_size = 1u << 20, .eos = {2, 300, 500, 900}});
    return opened;
}

/// A model with the vocabulary of a tokenizer that knows bytes, so that characters come in parts.
inline const SmallModel& small_model(std::uint64_t seed) {
    static const auto make = [](std::uint64_t s) {
        Config config = llama_config(1, 32, 2, 1, 16, 48, 150);
        config.decoder.vocab_size = tokenizer_of_bytes().tokenizer().vocab_size();
        return SmallModel(config, Type::f32, s);
    };
    static const SmallModel models[] = {make(1), make(2), make(3)};
    return models[seed % 3];
}

/// A generator in memory of exactly the planned size, between inaccessible pages.
struct OneGenerator {
    Guarded<std::byte> arena;
    Generator generator;

    static GeneratorPlan plan_of(const Model& model, const Tokenizer& tokenizer, const GeneratorLimits& limits) {
        GeneratorPlan plan;
        REQUIRE(make_generator_plan(model, tokenizer, limits, plan).ok());
        return plan;
    }
    OneGenerator(const Model& model, const Tokenizer& tokenizer, const Cache& cache, const GeneratorLimits& limits = {})
        : arena(plan_of(model, tokenizer, limits).arena_bytes, Flush::end, kArenaAlignment) {
        REQUIRE(make_generator(model, tokenizer, cache, limits, {arena.data(), arena.size()}, generator).ok());
    }
};

/// The result of a text.
struct Written {
    std::string text;
    std::vector<Token> tokens;
    std::vector<float> logits;
    FinishReason finish = FinishReason::none;
    std::vector<Token> filtered;  // what a filter was told
    GenerateFigures figures{};

    bool operator==(const Written& b) const {
        return text == b.text && tokens == b.tokens && finish == b.finish && filtered == b.filtered &&
               logits.size() == b.logits.size() &&
               (logits.empty() || std::memcmp(logits.data(), b.logits.data(), logits.size() * sizeof(float)) == 0);
    }
};

/// Forbids what a number made of the tokens accepted so far says, and remembers them.
struct HashFilter {
    std::vector<Token> seen;

    static void allow(void* context, std::span<const Token> text, std::span<std::uint32_t> mask) {
        const auto& self = *static_cast<HashFilter*>(context);
        std::uint32_t state = self.seen.empty() ? 7 : self.seen.back() + static_cast<std::uint32_t>(text.size());
        for (std::uint32_t& word : mask) word &= state = state * 1664525u + 1013904223u;
    }
    static void accept(void* context, Token token) { static_cast<HashFilter*>(context)->seen.push_back(token); }
    TokenFilter filter() { return {allow, accept, this}; }
};

/// The tokens that frequency_penalty and presence_penalty count, in a text whose prompt has n_prompt tokens.
inline std::span<const Token> counted_of(const std::vector<Token>& text, std::size_t n_prompt,
                                         const GenerateOptions& options) {
    const std::span<const Token> all = std::span(text).subspan(options.counts_prompt ? 0 : n_prompt);
    return all.last(std::min<std::size_t>(options.n_counted, all.size()));
}

/// The plain loop: everything first, then the cut.
inline Written naive(const Model& model, std::span<const Token> prompt, const GenerateOptions& options, bool filtered,
                     std::size_t context) {
    const Tokenizer& tokenizer = tokenizer_of_bytes().tokenizer();
    const std::size_t vocab_size = model.config().decoder.vocab_size;
    SmallSession s(model, {});
    Sampler sampler;
    REQUIRE(make_sampler(options.sampler, sampler).ok());
    HashFilter filter;
    Written w;
    std::vector<float> logits(vocab_size);
    std::vector<Candidate> candidates(vocab_size);
    std::vector<char> piece(max_piece_bytes(tokenizer));
    Decoder decoder;
    std::vector<Token> text(prompt.begin(), prompt.end());
    const auto shows = [&](Token token) {
        return options.show_special ||
               std::find(options.shown.begin(), options.shown.end(), token) != options.shown.end();
    };
    for (const Token token : text) (void)decode(tokenizer, decoder, token, shows(token), piece);
    std::vector<std::size_t> text_ends;  // after each token
    REQUIRE(forward(s.session, prompt, logits).ok());
    while (w.tokens.size() < options.n_new && text.size() < context && w.finish == FinishReason::none) {
        std::vector<std::uint32_t> mask((vocab_size + 31) / 32, 0xffffffffu);
        if (filtered) HashFilter::allow(&filter, text, mask);
        const std::size_t n_recent = std::min<std::size_t>(options.n_recent, text.size());
        Token token = 0;
        const Status status =
            sample(sampler, static_cast<std::uint32_t>(text.size()), logits, std::span(text).last(n_recent), candidates,
                   token, mask, counted_of(text, prompt.size(), options));
        REQUIRE(status.ok());
        filter.seen.push_back(token);
        const std::span<const Token> ends = options.end_tokens;
        if (tokenizer.ends_text(token) || std::find(ends.begin(), ends.end(), token) != ends.end()) {
            w.finish = FinishReason::end_token;
            break;
        }
        w.logits.insert(w.logits.end(), logits.begin(), logits.end());
        w.tokens.push_back(token);
        text.push_back(token);
        w.text += decode(tokenizer, decoder, token, shows(token), piece);
        text_ends.push_back(w.text.size());
        if (text.size() < context) REQUIRE(forward(s.session, {&token, 1}, logits).ok());
    }
    if (w.finish == FinishReason::none)
        w.finish = w.tokens.size() == options.n_new ? FinishReason::length : FinishReason::context;
    w.text += finish(decoder, piece);
    for (std::size_t end = 1; end <= w.text.size(); ++end) {
        std::size_t longest = 0;
        for (const std::string_view stop : options.stop)
            if (std::string_view(w.text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
        if (!longest) continue;
        w.text.resize(end - longest);
        std::size_t n = 0;
        while (n < text_ends.size() && text_ends[n++] < end) {
        }
        const bool by_token = !text_ends.empty() && text_ends.back() >= end;
        if (by_token) {
            w.tokens.resize(n);
            filter.seen.resize(n);  // not the end token either
        }
        w.logits.resize(w.tokens.size() * vocab_size);
        w.finish = FinishReason::stop_text;
        break;
    }
    if (filtered) w.filtered = filter.seen;
    return w;
}

/// Whether `text` is whole UTF-8 characters.
inline bool is_whole(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        if ((lead & 0xc0) == 0x80 || n > text.size() - i) return false;
        i += n;
    }
    return true;
}

inline Written written(Generator& generator, Workspace workspace, std::span<const Token> prompt,
                       const GenerateOptions& options, HashFilter* filter = nullptr) {
    const Status status = start(generator, prompt, options);
    CAPTURE(status.what);
    REQUIRE(status.ok());
    Written w;
    std::size_t n_empty = 0;
    for (Piece piece; piece.finish == FinishReason::none;) {
        const Status turn = generate(generator, workspace, piece);
        CAPTURE(turn.what);
        REQUIRE(turn.ok());
        CHECK(is_whole(piece.text));
        w.text += piece.text;
        w.tokens.insert(w.tokens.end(), piece.tokens.begin(), piece.tokens.end());
        w.logits.insert(w.logits.end(), piece.logits.begin(), piece.logits.end());
        w.finish = piece.finish;
        n_empty = piece.tokens.empty() ? n_empty + 1 : 0;
        REQUIRE(n_empty < 2);
    }
    if (filter) w.filtered = filter->seen;
    w.figures = generator.figures();
    CHECK(w.figures.n_tokens == w.tokens.size());
    CHECK(w.figures.n_accepted <= w.figures.n_proposed);
    return w;
}

}  // namespace fovea::testing
