// fovea certify: the first promise, seen. A prompt goes through every instruction set, several numbers of threads and
// several splits into pieces; the bits of all its logits must come out the same.
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "host/base/error.h"
#include "host/base/words.h"
#include "host/model/opened.h"
#include "host/model/runtime.h"
#include "tools/measure/trace_hash.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

constexpr std::uint32_t kAll = 0xffffffffu;  // a piece as long as the prompt
constexpr std::uint32_t kPieces[] = {1, 7, 64, kAll};
constexpr std::size_t kDefaultTokens = 80;  // longer than the longest piece, and not a multiple of 7

constexpr char kDefaultText[] =
    "set a timer for twenty five minutes, then turn off the ceiling light in the living room and close the blinds. "
    "At half past seven in the evening, remind me to water the plants, lock the front door, add olive oil and 12 eggs "
    "to the shopping list, and play some piano music in the kitchen until the heating reaches twenty one degrees.";

struct CertifyOptions {
    CommonOptions common;
    std::string model, text, expected;
    bool has_text = false, rows = false;
};

/// One way to compute the same thing.
struct Way {
    const char* isa;
    std::uint32_t n_threads;
    std::uint32_t piece;
    bool in_company = false;  ///< beside other sequences, over pages that are forked on the way
    std::uint64_t hash = 0;

    [[nodiscard]] std::string name() const {
        return std::string(isa) + ", " + std::to_string(n_threads) + (n_threads == 1 ? " thread, " : " threads, ") +
               (piece == kAll ? "all at once" : "pieces of " + std::to_string(piece)) +
               (in_company ? ", beside two others" : "");
    }
};

std::vector<Token> certify_tokens(const CertifyOptions& options, const host::Opened& opened) {
    const Stack& s = opened.model.config().decoder;
    std::vector<Token> tokens;
    if (options.has_text) return opened.tokens(options.text);
    if (opened.tokenizer.valid())
        tokens = opened.tokens(kDefaultText);
    else
        for (std::uint32_t i = 0; i < kDefaultTokens; ++i)
            tokens.push_back(static_cast<Token>(std::uint64_t{i} * 7919 % s.vocab_size));
    tokens.resize(std::min({tokens.size(), kDefaultTokens, std::size_t{s.max_positions}}));
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

class Certifier {
public:
    Certifier(const host::Opened& opened, std::span<const Token> tokens)
        : opened_(opened), tokens_(tokens), logits_(tokens.size() * opened.model.config().decoder.vocab_size) {}

    /// The hash of the logits after every token.
    [[nodiscard]] std::uint64_t run(const Way& way, Tracer* tracer = nullptr) {
        if (way.in_company) return run_in_company(way);
        Limits limits;
        limits.max_kv_len = static_cast<std::uint32_t>(tokens_.size());
        limits.n_threads = way.n_threads;
        host::Runtime<Session> running = start_session(opened_, limits, {.isa = way.isa});
        if (tracer) set_trace(*running, tracer->tap());
        const std::size_t n_vocab = logits_.size() / tokens_.size();
        for (std::size_t done = 0; done < tokens_.size();) {
            const std::size_t n = std::min<std::size_t>(way.piece, tokens_.size() - done);
            const std::span<float> out{logits_.data() + done * n_vocab, n * n_vocab};
            require(forward(*running, tokens_.subspan(done, n), out), opened_.name);
            done += n;
        }
        return hash_bits(logits_);
    }

    [[nodiscard]] std::string where_they_part(const Way& a, const Way& b) {
        Tracer first, second;
        (void)run(a, &first);
        (void)run(b, &second);
        const TracedOperation* operation = first_difference(first.operations(), second.operations());
        return operation ? "layer " + std::to_string(operation->layer) + ", " + operation->operation
                         : "nowhere when run again";
    }

private:
    /// Two other sequences take the text backwards, one token and three at a time. Halfway ours goes on as a fork, so
    /// that a page is copied.
    [[nodiscard]] std::uint64_t run_in_company(const Way& way) {
        const auto n_positions = static_cast<std::uint32_t>(tokens_.size());
        host::Runtime<Workspace> workspace = start_workspace(
            opened_, {.max_kv_len = n_positions, .n_threads = way.n_threads, .max_sequences = 4}, {.isa = way.isa});
        host::Runtime<CachePool> pool = start_pool(opened_, {.max_kv_len = n_positions, .max_sequences = 4});
        Cache ours = start_cache(opened_, pool), one = start_cache(opened_, pool), three = start_cache(opened_, pool);
        const std::vector<Token> backwards(tokens_.rbegin(), tokens_.rend());
        const std::size_t n_vocab = logits_.size() / tokens_.size();
        bool forked = false;
        for (std::size_t done = 0; done < tokens_.size();) {
            const std::size_t n = std::min<std::size_t>(way.piece, tokens_.size() - done);
            if (!forked && done > tokens_.size() / 2) {
                Cache fork;
                require(fork_cache(ours, fork), opened_.name);
                ours = fork;
                forked = true;
            }
            std::vector<Step> steps{{ours, tokens_.subspan(done, n), {logits_.data() + done * n_vocab, n * n_vocab}}};
            for (const auto& [other, most] : {std::pair{one, 1u}, std::pair{three, 3u}}) {
                const std::size_t left = backwards.size() - other.kv_len();
                if (left)
                    steps.push_back(
                        {other, std::span(backwards).subspan(other.kv_len(), std::min<std::size_t>(most, left)), {}});
            }
            std::rotate(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(done % steps.size()), steps.end());
            require(forward(*workspace, steps), opened_.name);
            done += n;
        }
        return hash_bits(logits_);
    }

    const host::Opened& opened_;
    std::span<const Token> tokens_;
    std::vector<float> logits_;
};

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
    nlohmann::ordered_json object{
        {"model", opened.name}, {"hash", hex(all.front().hash)},        {"equal", parted.empty()},
        {"n_tokens", n_tokens}, {"numerics_version", kNumericsVersion}, {"runs", nlohmann::ordered_json::array()}};
    for (const Way& way : all)
        object["runs"].push_back({{"isa", way.isa},
                                  {"n_threads", way.n_threads},
                                  {"piece", way.piece == kAll ? n_tokens : way.piece},
                                  {"sequences", way.in_company ? 3 : 1},
                                  {"hash", hex(way.hash)}});
    if (!parted.empty()) object["first_difference"] = parted;
    std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void certify(CertifyOptions& options) {
    const std::uint32_t asked_threads = options.common.n_threads;
    settle(options.common);
    const host::Opened opened = open_path_or_demo(options.model);
    opened.need_logits();
    const std::vector<Token> tokens = certify_tokens(options, opened);
    if (tokens.empty()) throw UsageError("-p: expected a text of 1 token or more, got none");
    const std::uint32_t context = opened.model.config().decoder.max_positions;
    if (tokens.size() > context)
        throw host::Error("prompt: expected at most " + std::to_string(context) + " positions, got " +
                          std::to_string(tokens.size()));

    Certifier certifier(opened, tokens);
    std::vector<Way> all = ways(options.common, asked_threads);
    if (!options.common.json)
        std::printf("%s: %zu tokens, numerics version %u\n", one_line(opened.name).c_str(), tokens.size(),
                    kNumericsVersion);
    std::fflush(stdout);
    const Way* other = nullptr;
    Progress progress = options.rows ? Progress() : progress_line("computing the logits in every way");
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].hash = certifier.run(all[i]);
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
    const std::string parted = other ? certifier.where_they_part(all.front(), *other) : "";
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
    auto options = std::make_shared<CertifyOptions>();
    CLI::App& verb =
        add_verb(app, "certify", "The same bits on every instruction set, thread count and split of the prompt");
    add_model(verb, options->model, "a Fovea file (default: the built-in model)");
    const Option text = add_text(verb, "-p,--prompt", options->text, "the text to run (default: one of 80 tokens)");
    add_text(verb, "--expect", options->expected, "fail unless this is the hash").type_name("HASH");
    add_flag(verb, "--rows", options->rows, "print the hash of each way to compute them");
    add_common(verb, options->common);
    set_action(verb, [options, text] {
        options->has_text = text.count() > 0;
        certify(*options);
    });
}

}  // namespace fovea
