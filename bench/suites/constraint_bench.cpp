// Answers of a form over a vocabulary of 150,000 tokens: how long 200 schemas take to compile, and what their masks cost for
// each token of answers that are drawn at random.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/suites/suites.h"
#include "convert/open/open.h"
#include "convert/tokenizers/random_vocabulary.h"
#include "fovea/constraint.h"
#include "fovea/host/runtime.h"
#include "fovea/sampler.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/grammar/grammar.h"
#include "tools/options/presets.h"

namespace fovea {
namespace {

constexpr std::uint32_t kTokens = 150'000, kAnswerTokens = 200;

/// CPU time of this thread, in ms: one mask takes microseconds, and other threads would distort wall time.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}
double milliseconds(double since) { return now() - since; }

struct Vocabulary {
    std::vector<std::byte> section = write_tokenizer_section(random_vocabulary(kTokens));
    Tokenizer tokenizer;
    std::vector<std::byte> index;
    double index_milliseconds = 0;

    Vocabulary() {
        require(open_tokenizer(section, tokenizer));
        const auto start = now();
        index = grammar::index_vocabulary(tokenizer);
        index_milliseconds = milliseconds(start);
    }
    static const Vocabulary& get() {
        static const Vocabulary vocabulary;
        return vocabulary;
    }
};

std::vector<std::string> schemas() {
    std::ifstream file(FOVEA_GOLDEN_DIR "/schemas.json");
    std::vector<std::string> out;
    for (const auto& schema : Json::parse(file)) out.push_back(schema.dump());
    return out;
}

/// The value that `share` of all do not exceed.
double at_share(std::vector<double> all, double share) {
    std::sort(all.begin(), all.end());
    return all[std::min(all.size() - 1, static_cast<std::size_t>(share * static_cast<double>(all.size())))];
}

void report(benchmark::State& state, const std::vector<double>& milliseconds) {
    state.SetIterationTime(at_share(milliseconds, 0.5) / 1e3);
    for (const auto& [name, share] : {std::pair{"p50_us", 0.5}, {"p95_us", 0.95}, {"p99_us", 0.99}, {"max_us", 1.0}})
        state.counters[name] = at_share(milliseconds, share) * 1e3;
    const auto n = static_cast<double>(milliseconds.size());
    state.counters["mean_us"] = std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0) / n * 1e3;
    state.counters["n"] = n;
}

void compile_all(benchmark::State& state) {
    const Vocabulary& v = Vocabulary::get();
    for (auto _ : state) {
        std::vector<double> all;
        std::size_t bytes = 0;
        for (const std::string& schema : schemas()) {
            const auto start = now();
            bytes += grammar::compile(grammar::read_json_schema(schema), v.tokenizer, v.index).size();
            all.push_back(milliseconds(start));
        }
        report(state, all);
        state.counters["index_ms"] = v.index_milliseconds;
        state.counters["mean_bytes"] = static_cast<double>(bytes) / static_cast<double>(all.size());
    }
}

/// A form and a text's place in it.
struct Text {
    std::vector<std::byte> form;
    Constraint constraint;
    std::vector<std::uint64_t> memory;
    ConstraintState place;

    explicit Text(const std::string& schema) {
        const Vocabulary& v = Vocabulary::get();
        form = grammar::compile(grammar::read_json_schema(schema), v.tokenizer, v.index);
        require(open_constraint(v.tokenizer, form, v.index, constraint));
        memory.resize(constraint_state_bytes(constraint) / 8);
        require(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), place));
    }
};

/// Masks of answers whose tokens are drawn evenly from those allowed; each mask's time with that of the token before it.
void mask_all(benchmark::State& state) {
    for (auto _ : state) {
        std::vector<double> all;
        Numbers numbers;
        for (const std::string& schema : schemas()) {
            Text text(schema);
            ConstraintState& place = text.place;
            std::vector<std::uint32_t> mask((kTokens + 31) / 32);
            std::vector<Token> allowed;
            for (std::uint32_t n = 0; n < kAnswerTokens && !must_end(place); ++n) {
                const Token before = allowed.empty() ? 0 : allowed[numbers.next() % allowed.size()];
                const auto start = now();
                if (n) (void)advance(place, before);
                std::fill(mask.begin(), mask.end(), 0xffffffffu);
                allow_tokens(place, mask);
                all.push_back(milliseconds(start));
                allowed.clear();
                for (Token id = 0; id + 1 < kTokens; ++id)
                    if (mask[id / 32] >> id % 32 & 1) allowed.push_back(id);
                if (allowed.empty()) break;
            }
        }
        report(state, all);
    }
}

// ---- the likeliest token -------------------------------------------------------------------------------------------

/// The likeliest of 150,000 tokens, of which so many in a thousand may be chosen; or without a mask.
constexpr int kNoMask = -1;
void choose_likeliest(benchmark::State& state, int per_mille) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> logits(kTokens);
    for (float& logit : logits) logit = normal(random);
    std::vector<std::uint32_t> mask;
    if (per_mille != kNoMask) mask.resize((kTokens + 31) / 32);
    for (std::uint32_t id = 0; !mask.empty() && id < kTokens; ++id)
        if (id == 0 || static_cast<int>(random() % 1000) < per_mille) mask[id / 32] |= 1u << id % 32;
    std::vector<Candidate> candidates(kTokens);
    Sampler sampler;
    require(make_sampler({}, sampler));
    std::vector<double> times;
    for (auto _ : state)
        for (int i = -200; i < 201; ++i) {
            Token token = 0;
            const double began = now();
            require(sample(sampler, 0, logits, {}, candidates, token, mask));
            if (i >= 0) times.push_back(milliseconds(began));
        }
    report(state, times);
}

// ---- whole answers -------------------------------------------------------------------------------------------------

/// A model of few layers whose output head is of the vocabulary: larger ones take longer for a token, and masks no more.
const host::Opened& large_vocabulary_model() {
    static const host::Opened opened = [] {
        Config config = preset_config("smollm2-135m");
        config.decoder.n_layers = 6;
        config.decoder.vocab_size = kTokens;
        host::Opened made = convert::open_random(config, {.type = Type::q8}, [](std::uint64_t) {});
        made.tokenizer = Vocabulary::get().tokenizer;
        return made;
    }();
    return opened;
}

/// Time of an answer of 48 tokens on one thread, in pairs: with the form, and without. Strings, so that as many passes are
/// taken; nothing is forced.
void generate_pairs(benchmark::State& state, float temperature) {
    const host::Opened& opened = large_vocabulary_model();
    host::Runtime<Session> session = start_session(opened, {.max_kv_len = 64, .n_threads = 1});
    host::Runtime<Generator> generator = start_generator(opened, session->cache(), {.max_tokens = 64});
    Text text(R"({"type":"string","minLength":2000})");
    const auto answer = [&](const TokenFilter& filter) {
        const Token prompt[] = {300, 301, 302};
        require(start(*generator, prompt, {.sampler = {.temperature = temperature}, .n_new = 48, .filter = filter}));
        Workspace workspace = session->workspace();
        const double began = now();
        for (Piece piece; piece.finish == FinishReason::none;) require(generate(*generator, workspace, piece));
        return milliseconds(began) / 48;
    };
    for (auto _ : state) {
        std::vector<double> shares, plain;
        (void)answer({});
        for (int i = 0; i < 15; ++i) {
            restart(text.place);
            const double with = answer(filter_of(text.place)), without = answer({});
            shares.push_back(with / without);
            plain.push_back(without);
        }
        report(state, plain);
        state.counters["median_times_as_long"] = at_share(shares, 0.5);
    }
}

}  // namespace

void add_constraint_suite() {
    add("constraint/compile/150000", compile_all);
    add("constraint/mask/150000", mask_all);
    add("constraint/choose/150000/no_mask", [](auto& state) { choose_likeliest(state, kNoMask); });
    for (const int share : {1000, 970, 700, 300, 10, 0})
        add("constraint/choose/150000/" + std::to_string(share), [=](auto& state) { choose_likeliest(state, share); });
    add("constraint/generate/150000/greedy", [](auto& state) { generate_pairs(state, 0); });
    add("constraint/generate/150000/temperature", [](auto& state) { generate_pairs(state, 0.8f); });
}

}  // namespace fovea
