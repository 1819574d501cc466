// fovea certify: the first promise, seen. A prompt goes through every instruction set, several numbers of threads and
// several splits into pieces; the bits of all its logits must come out the same.
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "fovea/host/opened.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/words.h"
#include "tools/measure/certifier.h"
#include "tools/measure/source.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

constexpr std::uint32_t kPieces[] = {1, 7, 64, Way::kAll};
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

/// The stack that reads the tokens: the encoder of a model that writes one text from another, or the decoder.
const Stack& reader_of(const Config& config) {
    return has_two_stacks(config) && config.encoder.vocab_size ? config.encoder : config.decoder;
}

std::vector<Token> certify_tokens(const CertifyOptions& options, const host::Opened& opened) {
    const Stack& s = reader_of(opened.model.config());
    std::vector<Token> tokens;
    if (options.has_text) return opened.tokens(options.text);
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
                                  {"piece", way.piece == Way::kAll ? n_tokens : way.piece},
                                  {"sequences", way.in_company ? 3 : 1},
                                  {"hash", hex(way.hash)}});
    if (!parted.empty()) object["first_difference"] = parted;
    std::printf("%s\n", json_text(object).c_str());
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
