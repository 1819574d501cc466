// fovea bench --sequences: what many sequences gain from going through the weights together.
#include <algorithm>
#include <cstdio>

#include "fovea/host/runtime.h"
#include "host/base/clock.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/words.h"
#include "tools/verbs/bench.h"

namespace fovea {
namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Sequences with a prompt each, decoded again and again from the same position.
class BenchSequences {
public:
    BenchSequences(const host::Opened& opened, const SequencesOptions& options)
        : opened_(opened),
          options_(options),
          n_most_(*std::max_element(options.counts.begin(), options.counts.end())),
          workspace_(start_workspace(opened,
                                     {.max_kv_len = options.n_prompt + options.n_new,
                                      .max_batch = std::max(n_most_, 192u),
                                      .n_threads = options.n_threads,
                                      .kv_type = options.kv_type,
                                      .max_sequences = n_most_},
                                     {.isa = options.isa})),
          pool_(start_pool(
              opened,
              {.max_kv_len = workspace_.plan.limits.max_kv_len, .max_sequences = n_most_, .kv_type = options.kv_type})),
          n_vocab_(opened.model.config().decoder.vocab_size),
          logits_(std::size_t{n_most_} * n_vocab_) {
        // One prompt is computed; the others are copies with pages of their own, as different prompts would have.
        std::vector<Token> prompt(options.n_prompt);
        for (Token& token : prompt) token = next_token();
        for (std::uint32_t i = 0; i < n_most_; ++i) caches_.push_back(start_cache(opened, pool_));
        const Step step{caches_[0], prompt, {}};
        require(forward(*workspace_, {&step, 1}), opened.name);
        require(mark(caches_[0]), opened.name);
        std::vector<std::byte> saved(cache_bytes(caches_[0]));
        std::size_t n = 0;
        require(save_cache(caches_[0], saved, n), opened.name);
        for (std::uint32_t i = 1; i < n_most_; ++i) require(restore_cache(caches_[i], saved), opened.name);
    }

    /// Seconds to decode n_new tokens of each of n sequences.
    double decode(std::uint32_t n) {
        std::vector<Token> tokens(n);
        std::vector<Step> steps;
        for (std::uint32_t i = 0; i < n; ++i) {
            require(rewind(caches_[i], options_.n_prompt), opened_.name);
            steps.push_back({caches_[i], {&tokens[i], 1}, std::span(logits_).subspan(i * n_vocab_, n_vocab_)});
        }
        const double started = host::seconds_now();
        for (std::uint32_t i = 0; i < options_.n_new; ++i) {
            for (Token& token : tokens) token = next_token();
            require(forward(*workspace_, steps), opened_.name);
        }
        return host::seconds_now() - started;
    }

private:
    /// Any spread of ids will do (Knuth's MMIX generator).
    Token next_token() {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<Token>((random_ >> 33) % n_vocab_);
    }

    const host::Opened& opened_;
    const SequencesOptions& options_;
    std::uint32_t n_most_;
    host::Runtime<Workspace> workspace_;
    host::Runtime<CachePool> pool_;
    std::size_t n_vocab_;
    std::vector<float> logits_;
    std::vector<Cache> caches_;
    std::uint64_t random_ = 1;
};

}  // namespace

void bench_sequences(const host::Opened& opened, const SequencesOptions& options) {
    BenchSequences sequences(opened, options);
    Json rows = Json::array();
    if (!options.json)
        std::printf("%s: %u threads, %u positions before; medians of %u pairs\n%9s %14s %14s %8s\n",
                    one_line(opened.name).c_str(), options.n_threads, options.n_prompt, options.n_repeats, "sequences",
                    "tokens/s", "alone", "times");
    for (const std::uint32_t n : options.counts) {
        std::vector<double> together, alone, times;
        (void)sequences.decode(n);  // warms up
        for (std::uint32_t i = 0; i < options.n_repeats; ++i) {
            const double a = sequences.decode(1), b = sequences.decode(n);
            alone.push_back(options.n_new / a);
            together.push_back(n * options.n_new / b);
            times.push_back(together.back() / alone.back());
        }
        if (options.json)
            rows.push_back({{"sequences", n},
                            {"tokens_per_second", median(together)},
                            {"alone_tokens_per_second", median(alone)},
                            {"times", median(times)}});
        else
            std::printf("%9u %14.1f %14.1f %8.2f\n", n, median(together), median(alone), median(times));
        std::fflush(stdout);
    }
    if (options.json)
        std::printf("%s\n", json_text(Json{{"model", opened.name},
                                           {"n_threads", options.n_threads},
                                           {"n_prompt_tokens", options.n_prompt},
                                           {"n_tokens", options.n_new},
                                           {"n_repeats", options.n_repeats},
                                           {"runs", rows}})
                                .c_str());
}

}  // namespace fovea
