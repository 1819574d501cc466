#include "tools/measure/certifier.h"

#include <algorithm>

#include "host/base/error.h"
#include "host/model/two_stacks.h"
#include "tools/measure/source.h"

namespace fovea {
namespace {

/// Tokens that go through passes piece by piece, alone or in company: two other sequences take them backwards, one token and
/// three at a time. Halfway ours goes on as a fork, so that a page is copied.
class TokenRun {
public:
    TokenRun(const host::Opened& opened, std::span<const Token> tokens)
        : opened_(opened),
          tokens_(tokens),
          backwards_(tokens.rbegin(), tokens.rend()),
          n_vocab_(opened.model.config().decoder.vocab_size),
          logits_(tokens.size() * n_vocab_) {}

    [[nodiscard]] std::span<const Token> tokens() const { return tokens_; }

    /// Calls pass(tokens, logits) for each piece; their hash.
    template<class Pass>
    [[nodiscard]] std::uint64_t run_alone(std::uint32_t piece, Pass pass) {
        for (std::size_t done = 0; done < tokens_.size();) {
            const std::size_t n = std::min<std::size_t>(piece, tokens_.size() - done);
            require(pass(tokens_.subspan(done, n), logits_of(done, n)), opened_.name);
            done += n;
        }
        return hash_bits(logits_);
    }

    /// Caches of the three, and what each reads, where the model reads a memory.
    struct Caches {
        Cache ours, one, three;
        Cache memory = {}, memory_of_others = {};
    };
    [[nodiscard]] std::uint64_t run_in_company(std::uint32_t piece, Workspace& workspace, Caches s) {
        bool forked = false;
        for (std::size_t done = 0; done < tokens_.size();) {
            const std::size_t n = std::min<std::size_t>(piece, tokens_.size() - done);
            if (!forked && done > tokens_.size() / 2) {
                Cache fork;
                require(fork_cache(s.ours, fork), opened_.name);
                s.ours = fork;
                forked = true;
            }
            std::vector<Step> steps{{s.ours, tokens_.subspan(done, n), logits_of(done, n), s.memory}};
            for (const auto& [other, most] : {std::pair{s.one, 1u}, std::pair{s.three, 3u}}) {
                const std::size_t left = backwards_.size() - other.kv_len();
                if (left)
                    steps.push_back({other,
                                     std::span(backwards_).subspan(other.kv_len(), std::min<std::size_t>(most, left)),
                                     {},
                                     s.memory_of_others});
            }
            std::rotate(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(done % steps.size()), steps.end());
            require(forward(workspace, steps), opened_.name);
            done += n;
        }
        return hash_bits(logits_);
    }

private:
    [[nodiscard]] std::span<float> logits_of(std::size_t first, std::size_t n) {
        return std::span(logits_).subspan(first * n_vocab_, n * n_vocab_);
    }

    const host::Opened& opened_;
    std::span<const Token> tokens_;
    std::vector<Token> backwards_;
    std::size_t n_vocab_;
    std::vector<float> logits_;
};

/// For a model that continues its prompt.
class DecoderCertifier final : public Certifier {
public:
    DecoderCertifier(const host::Opened& opened, std::span<const Token> tokens)
        : opened_(opened), text_(opened, tokens) {}

    std::uint64_t run(const Way& way, Tracer* tracer) override {
        const auto n_positions = static_cast<std::uint32_t>(text_.tokens().size());
        if (way.in_company) {
            host::Runtime<Workspace> workspace = start_workspace(
                opened_, {.max_kv_len = n_positions, .n_threads = way.n_threads, .max_sequences = 4}, {.isa = way.isa});
            host::Runtime<CachePool> pool = start_pool(opened_, {.max_kv_len = n_positions, .max_sequences = 4});
            return text_.run_in_company(
                way.piece, *workspace,
                {start_cache(opened_, pool), start_cache(opened_, pool), start_cache(opened_, pool)});
        }
        host::Runtime<Session> running =
            start_session(opened_, {.max_kv_len = n_positions, .n_threads = way.n_threads}, {.isa = way.isa});
        if (tracer) set_trace(*running, tracer->tap());
        return text_.run_alone(way.piece, [&](std::span<const Token> tokens, std::span<float> logits) {
            return forward(*running, tokens, logits);
        });
    }

private:
    const host::Opened& opened_;
    TokenRun text_;
};

/// For a model of two stacks. Texts beside ours read a memory of their own.
class TwoStackCertifier final : public Certifier {
public:
    TwoStackCertifier(const host::Opened& opened, std::span<const Token> tokens)
        : opened_(opened),
          target_(for_decoder(opened, tokens)),
          source_(opened.model, {tokens.begin(), tokens.end()}, opened.name),
          other_source_(opened.model, {tokens.rbegin(), tokens.rend()}, opened.name),
          text_(opened, target_) {}

    std::uint64_t run(const Way& way, Tracer* tracer) override {
        const auto n_tokens = static_cast<std::uint32_t>(target_.size());
        const TwoStackLimits limits{.n_threads = way.n_threads,
                                    .max_source = source_.n_rows(),
                                    .max_target = n_tokens,
                                    .n_rows = n_tokens + 4,
                                    .n_sources = 2,
                                    .n_texts = 4};
        TwoStacks stacks(opened_, plan_two_stacks(opened_, limits), way.isa);
        if (tracer) set_trace(stacks.workspace(), tracer->tap());
        const Cache memory = encoded(stacks, source_);
        if (way.in_company)
            return text_.run_in_company(
                way.piece, stacks.workspace(),
                {stacks.make_text(), stacks.make_text(), stacks.make_text(), memory, encoded(stacks, other_source_)});
        const Cache text = stacks.make_text();
        return text_.run_alone(way.piece, [&](std::span<const Token> tokens, std::span<float> logits) {
            const Step step{text, tokens, logits, memory};
            return forward(stacks.workspace(), {&step, 1});
        });
    }

private:
    [[nodiscard]] Cache encoded(TwoStacks& stacks, const Source& source) const {
        Cache memory = stacks.make_memory();
        require(cache_memory(stacks.workspace(), source.input(), {&memory, 1}), opened_.name);
        return memory;
    }
    /// As many as it has positions for; ids of its vocabulary, where the encoder's is larger.
    [[nodiscard]] static std::vector<Token> for_decoder(const host::Opened& opened, std::span<const Token> tokens) {
        const Stack& decoder = opened.model.config().decoder;
        std::vector<Token> target(tokens.begin(), tokens.end());
        for (Token& token : target) token %= decoder.vocab_size;
        if (decoder.max_positions) target.resize(std::min<std::size_t>(target.size(), decoder.max_positions));
        return target;
    }

    const host::Opened& opened_;
    std::vector<Token> target_;
    Source source_, other_source_;
    TokenRun text_;
};

}  // namespace

std::string Way::name() const {
    return std::string(isa) + ", " + std::to_string(n_threads) + (n_threads == 1 ? " thread, " : " threads, ") +
           (piece == kAll ? "all at once" : "pieces of " + std::to_string(piece)) +
           (in_company ? ", beside two others" : "");
}

std::string Certifier::where_they_part(const Way& a, const Way& b) {
    Tracer first, second;
    (void)run(a, &first);
    (void)run(b, &second);
    const TracedOperation* operation = first_difference(first.operations(), second.operations());
    return operation ? "layer " + std::to_string(operation->layer) + ", " + operation->operation
                     : "nowhere when run again";
}

std::unique_ptr<Certifier> make_certifier(const host::Opened& opened, std::span<const Token> tokens) {
    if (has_two_stacks(opened.model.config())) return std::make_unique<TwoStackCertifier>(opened, tokens);
    return std::make_unique<DecoderCertifier>(opened, tokens);
}

}  // namespace fovea
