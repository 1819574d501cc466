// fovea bench: speed, beside what the machine could do at best in the same minute.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "convert/open/open.h"
#include "host/base/clock.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/words.h"
#include "host/model/listing.h"
#include "host/model/parameters.h"
#include "tools/measure/available_memory.h"
#include "tools/measure/ceilings.h"
#include "tools/measure/source.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/options/presets.h"
#include "tools/options/workers.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/bench.h"
#include "tools/verbs/bench_subject.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

constexpr std::uint32_t kAny = 0xffffffffu;

struct BenchOptions {
    CommonOptions common;
    std::string model, preset;
    std::vector<std::uint32_t> sequences;  // --sequences
    Type type = Type::f32;
    Type kv_type = Type::f32;
    std::uint32_t n_prompt = 512, n_new = 64, context = 0, n_repeats = 5;
    bool has_n_prompt = false, has_n_new = false;
};

/// Positions that a session is to hold: what -p and -n take, which the context has room for.
std::uint32_t positions_of(const BenchOptions& options, const Config& config) {
    const std::uint64_t n_positions = std::uint64_t{options.n_prompt} + options.n_new;
    const std::uint64_t context = options.context ? options.context : config.decoder.max_positions;
    if (n_positions > context)
        throw host::Error("-p and -n: expected at most " + std::to_string(context) + " positions, got " +
                          std::to_string(n_positions));
    return options.context ? options.context : static_cast<std::uint32_t>(n_positions);
}

Limits limits_of(const BenchOptions& options, const Config& config) {
    return {
        .max_kv_len = positions_of(options, config), .n_threads = options.common.n_threads, .kv_type = options.kv_type};
}

/// A model that memory does not hold would be read from the disk again for every token: no figure worth having.
void need_memory(const BenchOptions& options, const Config& config, std::uint64_t file_bytes) {
    Plan plan;
    require(make_plan(config, limits_of(options, config), plan), options.preset);
    const std::uint64_t wanted = file_bytes + plan.arena_bytes, available = available_memory();
    if (wanted > available)
        throw host::Error(options.preset + ": memory: expected " + with_separators(wanted) +
                          " bytes for weights and arena, got " + with_separators(available) + "");
}

host::Opened open_random(const BenchOptions& bench) {
    WriteOptions options;
    options.type = bench.type;
    options.n_threads = bench.common.n_threads;
    options.progress = progress_line("random weights");
    const Config config = preset_config(bench.preset);
    host::Opened opened = convert::open_random(
        config, options, [&](std::uint64_t file_bytes) { need_memory(bench, config, file_bytes); });
    opened.name = bench.preset;
    return opened;
}

/// Whether layers' matrices are multiplied as integers: those are what prefill takes time for.
bool is_quantized(const Model& model) {
    for (const TensorInfo& tensor : tensors(model)) {
        if (std::string_view(tensor.role) == "query") return fovea::is_quantized(tensor.type);
    }
    return false;
}

/// One repetition's figures.
struct Sample {
    double peak = 0, read_peak = 0;  // operations, bytes per second
    double prefill = 0, decode = 0;  // tokens per second
    double prefill_share = 0, decode_share = 0;
};

class Bench {
public:
    Bench(const host::Opened& opened, BenchSubject& subject, const BenchOptions& options)
        : opened_(opened), subject_(subject), options_(options), quantized_(is_quantized(opened.model)) {}

    /// The ceilings stand on both sides of what is compared with them: a shared machine's speed wanders.
    [[nodiscard]] std::vector<Sample> measure() {
        std::vector<Sample> samples;
        const Progress progress = progress_line("measuring");
        (void)measure_once();  // pages, caches and clocks warm up
        Sample before = measure_ceilings();
        for (std::uint32_t i = 0; i < options_.n_repeats; ++i) {
            Sample sample = measure_once();
            const Sample after = measure_ceilings();
            sample.peak = std::max(before.peak, after.peak);
            sample.read_peak = std::max(before.read_peak, after.read_peak);
            sample.prefill_share = subject_.work.prefill_operations * sample.prefill / subject_.n_prompt / sample.peak;
            sample.decode_share = subject_.work.decode_bytes * sample.decode / sample.read_peak;
            samples.push_back(sample);
            before = after;
            if (progress) progress(i + 1, options_.n_repeats);
        }
        return samples;
    }

    [[nodiscard]] std::uint32_t n_streams() const { return n_streams_; }

private:
    Sample measure_once() {
        Sample sample;
        double started = host::seconds_now();
        subject_.read_prompt();
        sample.prefill = subject_.n_prompt / (host::seconds_now() - started);
        started = host::seconds_now();
        for (std::uint32_t i = 0; i < options_.n_new; ++i) subject_.write_token();
        sample.decode = options_.n_new / (host::seconds_now() - started);
        return sample;
    }

    Sample measure_ceilings() {
        Sample sample;
        const std::uint32_t n_threads = options_.common.n_threads;
        const char* const isa = subject_.isa;
        sample.peak = quantized_ ? measure_int8_peak(isa, n_threads) : measure_fma_peak(isa, n_threads);
        const ReadRate rate = measure_read_peak(isa, opened_.model.bytes(), n_threads);
        sample.read_peak = rate.bytes_per_second;
        n_streams_ = rate.n_streams;
        return sample;
    }

    const host::Opened& opened_;
    BenchSubject& subject_;
    const BenchOptions& options_;
    bool quantized_;
    std::uint32_t n_streams_ = 0;
};

double median(const std::vector<Sample>& samples, double Sample::*member) {
    std::vector<double> values;
    values.reserve(samples.size());
    for (const Sample& sample : samples) values.push_back(sample.*member);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void print(const host::Opened& opened, const BenchSubject& subject, const BenchOptions& options,
           const std::vector<Sample>& samples, std::uint32_t n_streams, std::uint32_t n_workers) {
    const auto of = [&](double Sample::*member) { return median(samples, member); };
    const bool quantized = is_quantized(opened.model);
    if (options.common.json) {
        std::printf("%s\n", json_text(Json{{"model", opened.name},
                                           {"file_bytes", opened.model.bytes().size()},
                                           {"arena_bytes", subject.arena_bytes},
                                           {"isa", subject.isa},
                                           {"n_threads", options.common.n_threads},
                                           {"n_workers", n_workers},
                                           {"n_prompt_tokens", subject.n_prompt},
                                           {"n_tokens", options.n_new},
                                           {"n_repeats", options.n_repeats},
                                           {"prefill_tokens_per_second", of(&Sample::prefill)},
                                           {"tokens_per_second", of(&Sample::decode)},
                                           {quantized ? "int8_peak" : "fma_peak", of(&Sample::peak)},
                                           {"read_peak", of(&Sample::read_peak)},
                                           {"prefill_share", of(&Sample::prefill_share)},
                                           {"decode_share", of(&Sample::decode_share)}})
                                .c_str());
        return;
    }
    std::printf("%s: %s file bytes, %s arena bytes, %s, %u %s; median of %u\n", one_line(opened.name).c_str(),
                with_separators(opened.model.bytes().size()).c_str(), with_separators(subject.arena_bytes).c_str(),
                subject.isa, options.common.n_threads, options.common.n_threads == 1 ? "thread" : "threads",
                options.n_repeats);
    if (n_workers)
        std::printf("with %u %s; shares are of this machine's own limits\n", n_workers,
                    n_workers == 1 ? "worker" : "workers");
    std::printf("prefill %5u tokens %12.1f tokens/s  %5.1f %% of the %s peak, %.1f %s/s\n", subject.n_prompt,
                of(&Sample::prefill), 100 * of(&Sample::prefill_share), quantized ? "int8" : "FMA",
                of(&Sample::peak) * 1e-9, quantized ? "GOP" : "GFLOP");
    if (options.n_new)
        std::printf("decode  %5u tokens %12.1f tokens/s  %5.1f %% of the read bandwidth, %.1f GB/s (%u streams)\n",
                    options.n_new, of(&Sample::decode), 100 * of(&Sample::decode_share), of(&Sample::read_peak) * 1e-9,
                    n_streams);
}

/// At most as many as a model of two stacks has positions for. 0: any number.
void fit(const char* name, bool given, std::uint32_t most, std::uint32_t& n) {
    if (!most || n <= most) return;
    if (given)
        throw host::Error(std::string(name) + ": expected at most " + std::to_string(most) + " positions, got " +
                          std::to_string(n));
    n = most;
}

std::unique_ptr<BenchSubject> make_two_stacks(BenchOptions& options, const host::Opened& opened) {
    const std::pair<bool, const char*> others[] = {{options.context != 0, "--context"},
                                                   {!options.sequences.empty(), "--sequences"},
                                                   {!options.common.workers.empty(), "--workers"}};
    for (const auto& [given, name] : others)
        if (given)
            throw UsageError(std::string(name) + ": expected a model that continues its prompt, got " + opened.name +
                             ", which has two stacks");
    const Stack &encoder = opened.model.config().encoder, &decoder = opened.model.config().decoder;
    if (options.has_n_prompt && !encoder.vocab_size)
        throw UsageError("-p: expected a model that reads tokens, got " + opened.name + ", which reads a window");
    fit("-p", options.has_n_prompt, encoder.max_positions, options.n_prompt);
    fit("-n", options.has_n_new, decoder.max_positions, options.n_new);
    return bench_two_stacks(opened, {.n_prompt = options.n_prompt,
                                     .n_new = options.n_new,
                                     .max_kv_len = options.n_new,
                                     .n_threads = options.common.n_threads,
                                     .kv_type = options.kv_type,
                                     .isa = options.common.isa_or_best()});
}

void measure_and_print(const BenchOptions& options, const host::Opened& opened, BenchSubject& subject,
                       std::uint32_t n_workers) {
    Bench bench(opened, subject, options);
    const std::vector<Sample> samples = bench.measure();
    print(opened, subject, options, samples, bench.n_streams(), n_workers);
}

void bench(BenchOptions& options) {
    if (options.model.empty() == options.preset.empty())
        throw UsageError(std::string("MODEL or --preset NAME: expected one of them, got ") +
                         (options.model.empty() ? "neither" : "both"));
    settle(options.common);
    const host::Opened opened = options.preset.empty() ? open_path(options.model) : open_random(options);
    if (has_two_stacks(opened.model.config()))
        return measure_and_print(options, opened, *make_two_stacks(options, opened), 0);
    opened.need_logits();
    const Limits limits = limits_of(options, opened.model.config());
    if (!options.sequences.empty())
        return bench_sequences(opened, {.counts = options.sequences,
                                        .n_prompt = options.n_prompt,
                                        .n_new = options.n_new,
                                        .n_repeats = options.n_repeats,
                                        .n_threads = options.common.n_threads,
                                        .kv_type = options.kv_type,
                                        .isa = options.common.isa_or_best(),
                                        .json = options.common.json});
    const SharedWork shared(options.common, opened);
    const auto subject = bench_session(opened,
                                       {.n_prompt = options.n_prompt,
                                        .n_new = options.n_new,
                                        .max_kv_len = limits.max_kv_len,
                                        .n_threads = limits.n_threads,
                                        .kv_type = limits.kv_type,
                                        .isa = options.common.isa_or_best()},
                                       shared.remote());
    measure_and_print(options, opened, *subject, shared.n_workers());
}

}  // namespace

void add_bench(CLI::App& app) {
    auto options = std::make_shared<BenchOptions>();
    auto sequences = std::make_shared<std::string>();
    CLI::App& verb = add_verb(app, "bench", "Tokens per second, beside the machine's own ceilings");
    add_model(verb, options->model);
    add_text(verb, "--preset", options->preset, "instead of a file, random weights: " + joined(preset_names()))
        .type_name("NAME");
    const Option type = add_type(verb, "--type", options->type, {std::begin(kTypes), std::end(kTypes)},
                                 "of random weights: " + type_names({std::begin(kTypes), std::end(kTypes)}));
    const Option n_prompt =
        add_count(verb, "-p", options->n_prompt, 1, kAny, "prompt tokens, of two stacks the encoder's (default 512)");
    const Option n_new = add_count(verb, "-n", options->n_new, 0, kAny, "new tokens (default 64)");
    add_count(verb, "--context", options->context, 1, kAny, "positions to hold (default: -p plus -n)");
    add_kv(verb, options->kv_type);
    add_count(verb, "--repeat", options->n_repeats, 1, 1000, "repetitions to take the median of (default 5)");
    add_text(verb, "--sequences", *sequences, "decode so many sequences together, beside one alone: 8, or 2,4,8")
        .type_name("N[,N]");
    add_workers(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options, sequences, type, n_prompt, n_new] {
        options->has_n_prompt = n_prompt.count() > 0, options->has_n_new = n_new.count() > 0;
        if (type.count() && options->preset.empty())
            throw UsageError("--type: expected --preset beside it, got a file, which has types");
        if (!sequences->empty()) options->sequences = read_list("--sequences", *sequences, 1024);
        for (const std::uint32_t n : options->sequences)
            if (n == 0) throw UsageError("--sequences: expected 1 or more, got 0");
        if (!options->sequences.empty() && !options->common.workers.empty())
            throw UsageError("--workers: expected one text alone with it, got --sequences");
        if (!options->sequences.empty() && options->n_new == 0)
            throw UsageError("--sequences: expected -n 1 or more with it, got 0");
        bench(*options);
    });
}

}  // namespace fovea
