// What masks of forms cost over a large vocabulary, and whether each is what the bytes of every token say.
//
//     fovea_form_masks [--tokens N] [--length N] [--trials N] [--most US] [--every N] FORMS
//
// FORMS has a form a line: a JSON schema, or else an expression. Answers are drawn from the allowed tokens, three times the same;
// a mask's time is the best of the three, with the step to it. Each mask is held against a step by that many tokens.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fovea/host/tokens.h"
#include "tests/fuzz/form.h"

namespace fovea {
namespace {

struct Options {
    std::uint32_t n_tokens = 150'000, n_length = 60, n_trials = 60, n_every = 1;
    double most_us = 0;
};

/// CPU time of this thread in µs: other threads would distort wall time.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

struct Vocabulary {
    std::vector<std::byte> section, index;
    Tokenizer tokenizer;

    explicit Vocabulary(std::uint32_t n_tokens) : section(write_tokenizer_section(random_vocabulary(n_tokens))) {
        fuzz::promise(open_tokenizer(section, tokenizer).ok(), "the vocabulary opens");
        index = grammar::index_vocabulary(tokenizer);
    }
};

struct State {
    std::vector<std::uint64_t> memory;
    ConstraintState state;

    explicit State(const Constraint& constraint) : memory(constraint_state_bytes(constraint) / 8) {
        fuzz::promise(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), state).ok(),
                      "a state is made");
    }
};

/// Whether a mask is what each of some tokens' own bytes say.
bool is_right(const Vocabulary& v, const std::vector<std::uint32_t>& mask, const State& text, State& next,
              std::mt19937& random, std::uint32_t n_trials) {
    const std::size_t n_allowed = fuzz::count_bits(mask);
    for (std::uint32_t n = 0; n < 2 * n_trials; ++n) {
        const Token id = n % 2 || n_allowed == 0 ? static_cast<Token>(random() % v.tokenizer.vocab_size())
                                                 : fuzz::nth_bit(mask, random() % n_allowed);
        if (token_bytes(v.tokenizer, id).size() > 126) continue;  // in no index
        const bool may = mask[id / 32] >> id % 32 & 1;
        fuzz::promise(copy_state(text.state, next.state).ok(), "a state is copied");
        if (advance(next.state, id) == may) continue;
        std::printf("token %u, %s: mask %d\n", id, std::string(token_bytes(v.tokenizer, id)).c_str(), may);
        return false;
    }
    return true;
}

/// A drawn answer: the time of each mask with the step to it. Nothing if a mask is wrong.
std::vector<double> draw(const Vocabulary& v, const Constraint& constraint, const Options& options, bool checks) {
    State text(constraint), next(constraint);
    std::mt19937 random(7), others(8);
    std::vector<std::uint32_t> mask((v.tokenizer.vocab_size() + 31) / 32);
    std::vector<double> times;
    for (Token token = 0; times.size() < options.n_length;) {
        const double began = now();
        if (!times.empty()) fuzz::promise(advance(text.state, token), "what is allowed is taken");
        std::fill(mask.begin(), mask.end(), 0xffffffffu);
        allow_tokens(text.state, mask);
        times.push_back(now() - began);
        if (checks && !is_right(v, mask, text, next, others, options.n_trials)) return {};
        if (must_end(text.state)) break;
        const std::size_t n_allowed = fuzz::count_bits(mask);
        fuzz::promise(n_allowed != 0, "a token is allowed");
        do token = fuzz::nth_bit(mask, random() % n_allowed);
        while (v.tokenizer.ends_text(token));
    }
    return times;
}

double at_share(std::vector<double>& all, double share) {
    std::sort(all.begin(), all.end());
    return all[std::min(all.size() - 1, static_cast<std::size_t>(share * static_cast<double>(all.size())))];
}

int run(const Options& options, const char* path) {
    const Vocabulary v(options.n_tokens);
    std::ifstream file(path);
    std::vector<double> all, compiled;
    std::size_t n_forms = 0, n_refused = 0, n_wrong = 0, n_line = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#' || n_line++ % options.n_every) continue;
        const double began = now();
        std::vector<std::byte> form;
        try {
            form = grammar::compile(line[0] == '{' ? grammar::read_json_schema(line) : grammar::read_regex(line),
                                    v.tokenizer, v.index);
        } catch (const grammar::GrammarError& error) {
            std::printf("refused after %.1f ms: %.90s: %s\n", (now() - began) / 1e3, line.c_str(), error.what());
            ++n_refused;
            continue;
        }
        compiled.push_back(now() - began);
        Constraint constraint;
        fuzz::promise(open_constraint(v.tokenizer, form, v.index, constraint).ok(), "a form opens");
        std::vector<double> times = draw(v, constraint, options, true);
        ++n_forms;
        n_wrong += times.empty();
        for (int again = 0; again < 3 && !times.empty(); ++again) {
            const std::vector<double> other = draw(v, constraint, options, false);
            for (std::size_t i = 0; i < times.size(); ++i) times[i] = again ? std::min(times[i], other[i]) : other[i];
        }
        if (times.empty()) continue;
        all.insert(all.end(), times.begin(), times.end());
        const double median = at_share(times, 0.5), most = at_share(times, 0.99);
        std::printf("%8.1f %8.1f %8.1f us, %6.1f ms, %7.1f KB: %.90s\n", median, most, times.back(),
                    compiled.back() / 1e3, static_cast<double>(form.size()) / 1024, line.c_str());
    }
    if (all.empty()) return std::puts("no form"), 1;
    const double worst = at_share(all, 1);
    std::printf(
        "%zu forms, %zu refused, %zu wrong; compiled in %.1f ms at the median, %.1f at 99 of 100, %.1f at most; masks "
        "%.1f us at the "
        "median, %.1f at 99 of 100, %.1f at most\n",
        n_forms, n_refused, n_wrong, at_share(compiled, 0.5) / 1e3, at_share(compiled, 0.99) / 1e3,
        at_share(compiled, 1) / 1e3, at_share(all, 0.5), at_share(all, 0.99), worst);
    return n_wrong || (options.most_us > 0 && worst > options.most_us);
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    fovea::Options options;
    const std::map<std::string, std::uint32_t*> numbers{{"--tokens", &options.n_tokens},
                                                        {"--length", &options.n_length},
                                                        {"--trials", &options.n_trials},
                                                        {"--every", &options.n_every}};
    const char* path = nullptr;
    for (int i = 1; i < argc; ++i) {
        const auto number = numbers.find(argv[i]);
        if (number != numbers.end() && i + 1 < argc)
            *number->second = static_cast<std::uint32_t>(std::strtoul(argv[++i], nullptr, 10));
        else if (std::string(argv[i]) == "--most" && i + 1 < argc)
            options.most_us = std::strtod(argv[++i], nullptr);
        else
            path = argv[i];
    }
    if (!path || options.n_every == 0) return std::fputs("form_masks: expected a file of forms\n", stderr), 2;
    return fovea::run(options, path);
}
