// fovea bench --sequences: what many sequences gain from going through the weights together.
#include "fovea/host/runtime.h"
#include "host/base/clock.h"
#include "tools/measure/median.h"
#include "tools/measure/source.h"
#include "tools/verbs/bench.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

/// Sequences with a prompt each, decoded again and again from the same position.
class BenchSequences {
public:
    BenchSequences(const host::Opened& opened, const BenchOptions& options)
        : opened_(opened),
          options_(options),
          n_most_(*std::max_element(options.counts.begin(), options.counts.end())),
          workspace_(start_workspace(opened,
                                     {.max_kv_len = options.n_prompt + options.n_new,
                                      .max_batch = std::max(n_most_, 192u),
                                      .n_threads = options.common.n_threads,
                                      .kv_type = options.common.kv_type,
                                      .max_sequences = n_most_},
                                     {.isa = options.common.isa_or_best()})),
          pool_(start_pool(opened, {.max_kv_len = workspace_.plan.limits.max_kv_len,
                                    .max_sequences = n_most_,
                                    .kv_type = options.common.kv_type})),
          n_vocab_(opened.model.config().decoder.vocab_size),
          logits_(std::size_t{n_most_} * n_vocab_),
          tokens_(spread_tokens(std::max<std::size_t>(options.n_prompt, std::size_t{n_most_} * options.n_new),
                                static_cast<std::uint32_t>(n_vocab_))) {
        // One prompt is computed; the others are copies with pages of their own, as different prompts would have.
        for (std::uint32_t i = 0; i < n_most_; ++i) caches_.push_back(start_cache(opened, pool_));
        const Step step{caches_[0], std::span(tokens_).first(options.n_prompt), {}};
        require(forward(*workspace_, {&step, 1}), opened.name);
        require(mark(caches_[0]), opened.name);
        std::vector<std::byte> saved(cache_bytes(caches_[0]));
        std::size_t n = 0;
        require(save_cache(caches_[0], saved, n), opened.name);
        for (std::uint32_t i = 1; i < n_most_; ++i) require(restore_cache(caches_[i], saved), opened.name);
    }

    /// Seconds to decode n_new tokens of each of n sequences.
    double decode(std::uint32_t n) {
        for (std::uint32_t i = 0; i < n; ++i) require(rewind(caches_[i], options_.n_prompt), opened_.name);
        const double started = host::seconds_now();
        for (std::size_t i = 0; i < options_.n_new; ++i) {
            std::vector<Step> steps;
            for (std::size_t s = 0; s < n; ++s)
                steps.push_back({caches_[s], std::span(tokens_).subspan(i * n + s, 1),
                                 std::span(logits_).subspan(s * n_vocab_, n_vocab_)});
            require(forward(*workspace_, steps), opened_.name);
        }
        return host::seconds_now() - started;
    }

private:
    const host::Opened& opened_;
    const BenchOptions& options_;
    std::uint32_t n_most_;
    host::Runtime<Workspace> workspace_;
    host::Runtime<CachePool> pool_;
    std::size_t n_vocab_;
    std::vector<float> logits_;
    std::vector<Token> tokens_;
    std::vector<Cache> caches_;
};

}  // namespace

void bench_sequences(const host::Opened& opened, const BenchOptions& options) {
    BenchSequences sequences(opened, options);
    Json rows = Json::array();
    const bool json = options.common.json;
    if (!json)
        std::printf("%s: %u threads, %u positions before; medians of %u pairs\n%9s %14s %14s %8s\n",
                    one_line(opened.name).c_str(), options.common.n_threads, options.n_prompt, options.n_repeats,
                    "sequences", "tokens/s", "alone", "times");
    for (const std::uint32_t n : options.counts) {
        std::vector<double> together, alone, times;
        (void)sequences.decode(n);  // warms up
        for (std::uint32_t i = 0; i < options.n_repeats; ++i) {
            const double a = sequences.decode(1), b = sequences.decode(n);
            alone.push_back(options.n_new / a);
            together.push_back(n * options.n_new / b);
            times.push_back(together.back() / alone.back());
        }
        if (json)
            rows.push_back({{"sequences", n},
                            {"tokens_per_second", median(together)},
                            {"alone_tokens_per_second", median(alone)},
                            {"times", median(times)}});
        else
            std::printf("%9u %14.1f %14.1f %8.2f\n", n, median(together), median(alone), median(times));
        std::fflush(stdout);
    }
    if (json)
        print_line({{"model", opened.name},
                    {"n_threads", options.common.n_threads},
                    {"n_prompt_tokens", options.n_prompt},
                    {"n_tokens", options.n_new},
                    {"n_repeats", options.n_repeats},
                    {"runs", rows}});
}

}  // namespace fovea
