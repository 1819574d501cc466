// fovea bench: speed, beside what the machine could do at best in the same minute.
#include "tools/verbs/bench.h"

#include <string_view>

#include "convert/open/open.h"
#include "host/base/clock.h"
#include "host/model/listing.h"
#include "host/model/parameters.h"
#include "tools/measure/available_memory.h"
#include "tools/measure/ceilings.h"
#include "tools/measure/median.h"
#include "tools/measure/source.h"
#include "tools/options/presets.h"
#include "tools/options/ranks.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

/// A session holds what -p and -n take, which the context has room for.
Limits limits_of(const BenchOptions& options, const Config& config) {
    const std::uint64_t n_positions = std::uint64_t{options.n_prompt} + options.n_new;
    const std::uint64_t context = options.context ? options.context : config.decoder.max_positions;
    if (n_positions > context)
        throw host::Error("-p and -n: expected at most " + std::to_string(context) + " positions, got " +
                          std::to_string(n_positions));
    return options.common.limits(options.context ? options.context : static_cast<std::uint32_t>(n_positions));
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
    options.type = bench.type.value_or(Type::f32);
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
    for (const TensorInfo& tensor : tensors(model))
        if (std::string_view(tensor.role) == "query") return fovea::is_quantized(tensor.type);
    return false;
}

/// One repetition's figures.
struct Sample {
    double peak = 0, read_peak = 0;  // operations, bytes per second
    std::uint32_t n_streams = 0;     // that were read at read_peak
    double prefill = 0, decode = 0;  // tokens per second
    double prefill_share = 0, decode_share = 0;
    RankTraffic sent = {};  // by this rank while the new tokens came
};

Sample measure_ceilings(const host::Opened& opened, const char* isa, std::uint32_t n_threads) {
    const ReadRate rate = measure_read_peak(isa, opened.model.bytes(), n_threads);
    return {.peak = (is_quantized(opened.model) ? measure_int8_peak : measure_fma_peak)(isa, n_threads),
            .read_peak = rate.bytes_per_second,
            .n_streams = rate.n_streams};
}

Sample measure_once(BenchSubject& subject, std::uint32_t n_new) {
    Sample sample;
    const double started = host::seconds_now();
    subject.read_prompt();
    const double read = host::seconds_now();
    const RankTraffic before = rank_traffic();
    for (std::uint32_t i = 0; i < n_new; ++i) subject.write_token();
    sample.prefill = subject.n_prompt / (read - started);
    sample.decode = n_new / (host::seconds_now() - read);
    const RankTraffic after = rank_traffic();
    sample.sent = {after.n_messages - before.n_messages, after.n_bytes - before.n_bytes};
    return sample;
}

/// The ceilings stand on both sides of what is compared with them: a shared machine's speed wanders.
std::vector<Sample> measure(const host::Opened& opened, BenchSubject& subject, const BenchOptions& options) {
    std::vector<Sample> samples;
    const Progress progress = progress_line("measuring");
    const auto ceilings = [&] { return measure_ceilings(opened, subject.isa, options.common.n_threads); };
    (void)measure_once(subject, options.n_new);  // pages, caches and clocks warm up
    Sample before = ceilings();
    for (std::uint32_t i = 0; i < options.n_repeats; ++i) {
        Sample sample = measure_once(subject, options.n_new);
        const Sample after = ceilings();
        sample.peak = std::max(before.peak, after.peak);
        sample.read_peak = std::max(before.read_peak, after.read_peak);
        sample.n_streams = after.n_streams;
        sample.prefill_share = subject.work.prefill_operations * sample.prefill / subject.n_prompt / sample.peak;
        sample.decode_share = subject.work.decode_bytes * sample.decode / sample.read_peak;
        samples.push_back(sample);
        before = after;
        if (progress) progress(i + 1, options.n_repeats);
    }
    return samples;
}

void measure_and_print(const BenchOptions& options, const host::Opened& opened, BenchSubject& subject) {
    const std::vector<Sample> samples = measure(opened, subject, options);
    const auto of = [&](double Sample::*member) {
        std::vector<double> values;
        for (const Sample& sample : samples) values.push_back(sample.*member);
        return median(std::move(values));
    };
    const bool quantized = is_quantized(opened.model);
    const std::uint64_t file_bytes = opened.model.bytes().size();
    if (options.common.json)
        return print_line({{"model", opened.name},
                           {"file_bytes", file_bytes},
                           {"arena_bytes", subject.arena_bytes},
                           {"isa", subject.isa},
                           {"n_threads", options.common.n_threads},
                           {"n_ranks", joined_ranks() ? joined_ranks()->n_ranks : 1},
                           {"sent_messages", samples.back().sent.n_messages},
                           {"sent_bytes", samples.back().sent.n_bytes},
                           {"n_prompt_tokens", subject.n_prompt},
                           {"n_tokens", options.n_new},
                           {"n_repeats", options.n_repeats},
                           {"prefill_tokens_per_second", of(&Sample::prefill)},
                           {"tokens_per_second", of(&Sample::decode)},
                           {quantized ? "int8_peak" : "fma_peak", of(&Sample::peak)},
                           {"read_peak", of(&Sample::read_peak)},
                           {"prefill_share", of(&Sample::prefill_share)},
                           {"decode_share", of(&Sample::decode_share)}});
    std::printf("%s: %s file bytes, %s arena bytes, %s, %s; median of %u\n", one_line(opened.name).c_str(),
                with_separators(file_bytes).c_str(), with_separators(subject.arena_bytes).c_str(), subject.isa,
                counted(options.common.n_threads, "thread").c_str(), options.n_repeats);
    std::printf("prefill %5u tokens %12.1f tokens/s  %5.1f %% of the %s peak, %.1f %s/s\n", subject.n_prompt,
                of(&Sample::prefill), 100 * of(&Sample::prefill_share), quantized ? "int8" : "FMA",
                of(&Sample::peak) * 1e-9, quantized ? "GOP" : "GFLOP");
    if (const Ranks* ranks = joined_ranks(); ranks && options.n_new)
        std::printf("%u ranks; for each new token this one sends %.1f messages, %s bytes\n", ranks->n_ranks,
                    static_cast<double>(samples.back().sent.n_messages) / options.n_new,
                    with_separators(samples.back().sent.n_bytes / options.n_new).c_str());
    if (options.n_new)
        std::printf("decode  %5u tokens %12.1f tokens/s  %5.1f %% of the read bandwidth, %.1f GB/s (%u streams)\n",
                    options.n_new, of(&Sample::decode), 100 * of(&Sample::decode_share), of(&Sample::read_peak) * 1e-9,
                    samples.back().n_streams);
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
    if (const char* other =
            first_given({{options.context != 0, "--context"}, {!options.counts.empty(), "--sequences"}}))
        throw UsageError(std::string(other) + ": expected a model that continues its prompt, got " + opened.name +
                         ", which has two stacks");
    const Stack &encoder = opened.model.config().encoder, &decoder = opened.model.config().decoder;
    if (options.asked_prompt && !encoder.vocab_size)
        throw UsageError("-p: expected a model that reads tokens, got " + opened.name + ", which reads a window");
    fit("-p", options.asked_prompt.has_value(), encoder.max_positions, options.n_prompt);
    fit("-n", options.asked_new.has_value(), decoder.max_positions, options.n_new);
    return bench_two_stacks(opened, options);
}

void check_given(BenchOptions& options) {
    if (options.type && options.preset.empty())
        throw UsageError("--type: expected --preset beside it, got a file, which has types");
    if (!options.sequences.empty()) options.counts = read_list("--sequences", options.sequences, 1024);
    for (const std::uint32_t n : options.counts)
        if (n == 0) throw UsageError("--sequences: expected 1 or more, got 0");
    if (!options.counts.empty() && options.n_new == 0)
        throw UsageError("--sequences: expected -n 1 or more with it, got 0");
    check_one_source(options.model, options.preset);
}

void bench(BenchOptions& options) {
    options.n_prompt = options.asked_prompt.value_or(options.n_prompt);
    options.n_new = options.asked_new.value_or(options.n_new);
    check_given(options);
    if (!options.counts.empty()) refuse_by_ranks("--sequences");
    settle(options.common);
    const host::Opened opened = options.preset.empty() ? open_path(options.model) : open_random(options);
    if (has_two_stacks(opened.model.config()))
        return measure_and_print(options, opened, *make_two_stacks(options, opened));
    opened.need_logits();
    const Limits limits = limits_of(options, opened.model.config());
    if (!options.counts.empty()) return bench_sequences(opened, options);
    measure_and_print(options, opened, *bench_session(opened, options, limits));
}

}  // namespace

void add_bench(CLI::App& app) {
    const auto declare = [](const Verb& verb, BenchOptions& o) {
        verb.model(o.model);
        verb.text("--preset", o.preset, "instead of a file, random weights: " + joined(preset_names()), "NAME");
        verb.weight_type(o.type, "random weights");
        verb.count("-p", o.asked_prompt, 1, kAny, "prompt tokens, of two stacks the encoder's (default 512)");
        verb.count("-n", o.asked_new, 0, kAny, "new tokens (default 64)");
        verb.count("--context", o.context, 1, kAny, "positions to hold (default: -p plus -n)");
        verb.kv(o.common.kv_type);
        verb.count("--repeat", o.n_repeats, 1, 1000, "repetitions to take the median of (default 5)");
        verb.text("--sequences", o.sequences, "decode so many sequences together, beside one alone: 8, or 2,4,8",
                  "N[,N]");
        verb.common(o.common);
    };
    add_verb<BenchOptions>(app, "bench", "Tokens per second, beside the machine's own ceilings", bench, declare);
}

}  // namespace fovea
