// fovea certify: the first promise, seen. A prompt goes through every instruction set, several numbers of threads and
// several splits into pieces; the bits of all its logits must come out the same.
#include <thread>

#include "host/model/two_stacks.h"
#include "tools/measure/source.h"
#include "tools/measure/trace_hash.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

constexpr std::uint32_t kPieces[] = {1, 7, 64, kAny};
constexpr std::size_t kDefaultTokens = 80;  // longer than the longest piece, and not a multiple of 7

constexpr char kDefaultText[] =
    "set a timer for twenty five minutes, then turn off the ceiling light in the living room and close the blinds. "
    "At half past seven in the evening, remind me to water the plants, lock the front door, add olive oil and 12 eggs "
    "to the shopping list, and play some piano music in the kitchen until the heating reaches twenty one degrees.";

/// One way to compute the same thing.
struct Way {
    const char* isa;
    std::uint32_t n_threads;
    std::uint32_t piece;      ///< tokens in a pass; kAny: all
    bool in_company = false;  ///< beside other sequences, over pages that are forked on the way
    std::uint64_t hash = 0;

    [[nodiscard]] std::string name() const {
        return std::string(isa) + ", " + counted(n_threads, "thread") + ", " +
               (piece == kAny ? "all at once" : "pieces of " + std::to_string(piece)) +
               (in_company ? ", beside two others" : "");
    }
};

class Certifier {
public:
    virtual ~Certifier() = default;
    /// The hash of the logits after every token. Throws host::Error.
    [[nodiscard]] virtual std::uint64_t run(const Way& way, Tracer* tracer = nullptr) = 0;
    /// The first operation whose results are not the same.
    [[nodiscard]] std::string where_they_part(const Way& a, const Way& b) {
        Tracer first, second;
        (void)run(a, &first);
        (void)run(b, &second);
        const TracedOperation* operation = first_difference(first.operations(), second.operations());
        return operation ? "layer " + std::to_string(operation->layer) + ", " + operation->operation
                         : "nowhere when run again";
    }
};

/// Tokens that go through passes piece by piece, alone or in company: two other sequences take them backwards, one token and
/// three at a time. Halfway ours goes on as a fork, so that a page is copied.
class TokenCertifier : public Certifier {
public:
    TokenCertifier(const host::Opened& opened, std::span<const Token> tokens)
        : opened_(opened),
          tokens_(tokens.begin(), tokens.end()),
          backwards_(tokens.rbegin(), tokens.rend()),
          n_vocab_(opened.model.config().decoder.vocab_size),
          logits_(tokens.size() * n_vocab_) {}

protected:
    /// Calls pass(tokens, logits) for each piece; their hash.
    template<class Pass>
    [[nodiscard]] std::uint64_t run_alone(std::uint32_t piece, Pass pass) {
        const std::span<const Token> all = tokens_;
        for (std::size_t done = 0; done < all.size();) {
            const std::size_t n = std::min<std::size_t>(piece, all.size() - done);
            const std::span<float> logits = std::span(logits_).subspan(done * n_vocab_, n * n_vocab_);
            require(pass(all.subspan(done, n), logits), opened_.name);
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
        std::size_t done = 0;
        bool forked = false;
        return run_alone(piece, [&](std::span<const Token> tokens, std::span<float> logits) {
            if (!forked && done > tokens_.size() / 2) {
                Cache fork;
                require(fork_cache(s.ours, fork), opened_.name);
                s.ours = fork;
                forked = true;
            }
            std::vector<Step> steps{{s.ours, tokens, logits, s.memory}};
            for (const auto& [other, most] : {std::pair{s.one, 1u}, std::pair{s.three, 3u}}) {
                const std::size_t left = backwards_.size() - other.kv_len();
                if (left)
                    steps.push_back({other,
                                     std::span(backwards_).subspan(other.kv_len(), std::min<std::size_t>(most, left)),
                                     {},
                                     s.memory_of_others});
            }
            std::rotate(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(done % steps.size()), steps.end());
            done += tokens.size();
            return forward(workspace, steps);
        });
    }

    const host::Opened& opened_;
    const std::vector<Token> tokens_, backwards_;

private:
    std::size_t n_vocab_;
    std::vector<float> logits_;
};

/// For a model that continues its prompt.
class DecoderCertifier final : public TokenCertifier {
public:
    using TokenCertifier::TokenCertifier;

    std::uint64_t run(const Way& way, Tracer* tracer) override {
        const auto n_positions = static_cast<std::uint32_t>(tokens_.size());
        if (way.in_company) {
            host::Runtime<Workspace> workspace = start_workspace(
                opened_, {.max_kv_len = n_positions, .n_threads = way.n_threads, .max_sequences = 4}, {.isa = way.isa});
            host::Runtime<CachePool> pool = start_pool(opened_, {.max_kv_len = n_positions, .max_sequences = 4});
            return run_in_company(way.piece, *workspace,
                                  {start_cache(opened_, pool), start_cache(opened_, pool), start_cache(opened_, pool)});
        }
        host::Runtime<Session> running =
            start_session(opened_, {.max_kv_len = n_positions, .n_threads = way.n_threads}, {.isa = way.isa});
        if (tracer) set_trace(*running, tracer->tap());
        return run_alone(way.piece, [&](std::span<const Token> tokens, std::span<float> logits) {
            return forward(*running, tokens, logits);
        });
    }
};

/// For a model of two stacks. Texts beside ours read a memory of their own.
class TwoStackCertifier final : public TokenCertifier {
public:
    TwoStackCertifier(const host::Opened& opened, std::span<const Token> tokens)
        : TokenCertifier(opened, for_decoder(opened, tokens)),
          source_(opened.model, {tokens.begin(), tokens.end()}, opened.name),
          other_source_(opened.model, {tokens.rbegin(), tokens.rend()}, opened.name) {}

    std::uint64_t run(const Way& way, Tracer* tracer) override {
        const auto n_tokens = static_cast<std::uint32_t>(tokens_.size());
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
            return run_in_company(
                way.piece, stacks.workspace(),
                {stacks.make_text(), stacks.make_text(), stacks.make_text(), memory, encoded(stacks, other_source_)});
        const Cache text = stacks.make_text();
        return run_alone(way.piece, [&](std::span<const Token> tokens, std::span<float> logits) {
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

    Source source_, other_source_;
};

/// A model of one stack continues `tokens`. A decoder of two stacks reads them beside what its encoder makes of them, or of a sound or
/// vectors if it reads those. Both arguments must outlive it. Throws host::Error.
std::unique_ptr<Certifier> make_certifier(const host::Opened& opened, std::span<const Token> tokens) {
    if (has_two_stacks(opened.model.config())) return std::make_unique<TwoStackCertifier>(opened, tokens);
    return std::make_unique<DecoderCertifier>(opened, tokens);
}

struct CertifyOptions {
    CommonOptions common;
    std::string model, expected;
    std::optional<std::string> text;
    bool rows = false;
};

/// The stack that reads the tokens: the encoder of a model that writes one text from another, or the decoder.
const Stack& reader_of(const Config& config) {
    return has_two_stacks(config) && config.encoder.vocab_size ? config.encoder : config.decoder;
}

std::vector<Token> certify_tokens(const CertifyOptions& options, const host::Opened& opened) {
    const Stack& s = reader_of(opened.model.config());
    std::vector<Token> tokens;
    if (options.text) return opened.tokens(*options.text);
    if (opened.tokenizer.valid())
        tokens = opened.tokens(kDefaultText);
    else
        for (std::uint32_t i = 0; i < kDefaultTokens; ++i)
            tokens.push_back(static_cast<Token>(std::uint64_t{i} * 7919 % s.vocab_size));
    tokens.resize(std::min(tokens.size(), kDefaultTokens));
    if (s.max_positions) tokens.resize(std::min<std::size_t>(tokens.size(), s.max_positions));
    return tokens;
}

/// Every number of threads up to 8, then doubling, up to twice the CPUs, or to --threads.
std::vector<std::uint32_t> thread_counts(std::uint32_t asked) {
    const std::uint32_t most = asked ? asked : std::clamp(2 * std::thread::hardware_concurrency(), 1u, kMaxThreads);
    std::vector<std::uint32_t> counts;
    for (std::uint32_t n = 1; n < most; n += n < 8 ? 1 : n) counts.push_back(n);
    counts.push_back(most);
    return counts;
}

/// The specification, scalar code on one thread with the whole prompt, comes first: the others are held against it.
std::vector<Way> ways(const CommonOptions& common, std::uint32_t asked_threads) {
    std::vector<Way> all;
    const std::span<const char* const> names = isa_names();
    for (std::size_t i = names.size(); i-- > 0;) {
        if (!common.isa.empty() && common.isa != names[i]) continue;
        for (const std::uint32_t n_threads : thread_counts(asked_threads)) {
            for (std::size_t p = std::size(kPieces); p-- > 0;) all.push_back({names[i], n_threads, kPieces[p]});
            all.push_back({names[i], n_threads, kPieces[1], true});
        }
    }
    return all;
}

void print_json(const host::Opened& opened, std::size_t n_tokens, const std::vector<Way>& all,
                const std::string& parted) {
    Json object{{"model", opened.name}, {"hash", hex(all.front().hash)},        {"equal", parted.empty()},
                {"n_tokens", n_tokens}, {"numerics_version", kNumericsVersion}, {"runs", Json::array()}};
    for (const Way& way : all)
        object["runs"].push_back({{"isa", way.isa},
                                  {"n_threads", way.n_threads},
                                  {"piece", way.piece == kAny ? n_tokens : way.piece},
                                  {"sequences", way.in_company ? 3 : 1},
                                  {"hash", hex(way.hash)}});
    if (!parted.empty()) object["first_difference"] = parted;
    print_line(object);
}

void certify(CertifyOptions& options) {
    const std::uint32_t asked_threads = options.common.n_threads;
    settle(options.common);
    const host::Opened opened = open_path_or_demo(options.model);
    if (!has_two_stacks(opened.model.config())) opened.need_logits();
    const std::vector<Token> tokens = certify_tokens(options, opened);
    if (tokens.empty()) throw UsageError("-p: expected a text of 1 token or more, got none");
    const std::uint32_t context = reader_of(opened.model.config()).max_positions;
    if (context && tokens.size() > context)
        throw host::Error("prompt: expected at most " + std::to_string(context) + " positions, got " +
                          std::to_string(tokens.size()));

    const std::unique_ptr<Certifier> certifier = make_certifier(opened, tokens);
    std::vector<Way> all = ways(options.common, asked_threads);
    if (!options.common.json)
        std::printf("%s: %zu tokens, numerics version %u\n", one_line(opened.name).c_str(), tokens.size(),
                    kNumericsVersion);
    std::fflush(stdout);
    const Way* other = nullptr;
    Progress progress = options.rows ? Progress() : progress_line("computing the logits in every way");
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].hash = certifier->run(all[i]);
        if (progress) progress(i + 1, all.size());
        if (!other && all[i].hash != all.front().hash) other = &all[i];
        if (options.common.json || !options.rows) continue;
        std::printf("%s  %s\n", hex(all[i].hash).c_str(), all[i].name().c_str());
        std::fflush(stdout);
    }
    progress = {};  // ends its line
    if (!options.common.json && !options.rows)
        std::printf("%s  %zu ways to compute them, %s\n", hex(all.front().hash).c_str(), all.size(),
                    options.common.isa.empty() ? joined(isa_names()).c_str() : options.common.isa.c_str());
    const std::string parted = other ? certifier->where_they_part(all.front(), *other) : "";
    if (options.common.json)
        print_json(opened, tokens.size(), all, parted);
    else
        std::printf("%s\n", parted.empty() ? "equal" : ("differs first at " + parted).c_str());
    if (other)
        throw host::Error("logits: expected the bits of (" + all.front().name() + "), got others with (" +
                          other->name() + "), first at " + parted);
    const std::string hash = hex(all.front().hash);
    if (!options.expected.empty() && options.expected != hash)
        throw host::Error("logits' hash: expected " + options.expected + ", got " + hash);
}

}  // namespace

void add_certify(CLI::App& app) {
    const auto declare = [](const Verb& verb, CertifyOptions& o) {
        verb.model(o.model, "a Fovea file (default: the built-in model)");
        verb.text("-p,--prompt", o.text, "the text to run (default: one of 80 tokens)");
        verb.text("--expect", o.expected, "fail unless this is the hash", "HASH");
        verb.flag("--rows", o.rows, "print the hash of each way to compute them");
        verb.common(o.common);
    };
    add_verb<CertifyOptions>(app, "certify",
                             "The same bits on every instruction set, thread count and split of the prompt", certify,
                             declare);
}

}  // namespace fovea
