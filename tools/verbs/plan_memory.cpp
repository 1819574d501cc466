#include "tools/verbs/plan_memory.h"

#include <cmath>
#include <cstdio>

#include "fovea/sound.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "host/speech/speech_engine.h"
#include "host/translate/source_memory.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/run_options.h"

namespace fovea {
namespace {

std::string threads_words(std::uint32_t n) { return std::to_string(n) + (n == 1 ? " thread" : " threads"); }

/// Parts of a plan, one after the other.
class PartList {
public:
    explicit PartList(const Limits& limits) { made_.plan.limits = limits; }
    PartList& add(const char* name, std::uint64_t bytes) {
        Plan& plan = made_.plan;
        if (bytes) plan.parts[plan.n_parts++] = {name, plan.arena_bytes, bytes};
        plan.arena_bytes += bytes;
        return *this;
    }
    PartList& add(const TwoStackPlan& stacks) {
        return add("workspace", stacks.workspace.arena_bytes)
            .add("memory", stacks.memories.arena_bytes)
            .add("text", stacks.texts.arena_bytes);
    }
    [[nodiscard]] MemoryPlan take(const std::string& heading, Json settings) {
        made_.heading = heading + ", " + threads_words(made_.plan.limits.n_threads);
        made_.settings = std::move(settings);
        return std::move(made_);
    }

private:
    MemoryPlan made_;
};

MemoryPlan plan_run(const host::Opened& opened, const PlanOptions& options) {
    const TargetPlan plan =
        Translator::plan(opened, {.limits = {.n_threads = options.limits.n_threads, .kv_type = options.limits.kv_type},
                                  .generator = RunOptions().limits(),
                                  .n_beams = options.n_beams});
    const std::uint32_t n_beams = plan.stacks.texts.limits.max_sequences;
    return PartList(plan.stacks.workspace.limits)
        .add(plan.stacks)
        .add("generator", plan.generator.arena_bytes)
        .add("beams", plan.search_bytes)
        .take("memory of run: sources of " + std::to_string(plan.stacks.memories.limits.max_kv_len) +
                  " tokens, texts of " + std::to_string(plan.stacks.texts.limits.max_kv_len) + ", " +
                  std::to_string(n_beams) + (n_beams == 1 ? " beam" : " beams"),
              {{"n_beams", n_beams}});
}

MemoryPlan plan_transcribe(const host::Opened& opened, const PlanOptions& options) {
    const Sound& sound = opened.model.config().encoder.sound;
    const SpeechPlan plan = SpeechWorkspace::plan(
        opened, {.n_threads = options.limits.n_threads, .kv_type = options.limits.kv_type, .words = options.words});
    const double window = static_cast<double>(window_samples(sound)) / sound.sample_rate;
    const double seconds = options.seconds > 0 ? static_cast<double>(options.seconds) : window;
    const auto n_samples = static_cast<std::size_t>(std::ceil(seconds * sound.sample_rate));
    const RecordingBytes recording = recording_bytes(opened.model, n_samples, opened.name);
    char length[40];
    std::snprintf(length, sizeof length, "%.10g", seconds);
    return PartList(plan.stacks.workspace.limits)
        .add(plan.stacks)
        .add("logits", plan.logits_bytes)
        .add("words", plan.word_bytes)
        .add("samples", recording.samples)
        .add("frames", recording.frames)
        .add("frames' scratch", recording.scratch)
        .take("memory of transcribe: a recording of " + std::string(length) +
                  (options.seconds > 0 ? " seconds" : " seconds, a window (--seconds says another length)"),
              {{"seconds", seconds}});
}

// Files without the metadata that those verbs read are for `encode` alone.
bool translates_by_run(const host::Opened& opened) {
    return opened.kind() == host::Kind::translation && !find_info(opened.model, "target").empty();
}
bool transcribes(const host::Opened& opened) {
    return opened.tokenizer.valid() && !find_info(opened.model, "speech").empty();
}

void check(const host::Opened& opened, const PlanOptions& options, bool translates, bool hears) {
    const auto refuse = [&](bool given, const char* name, const char* expected) {
        if (given)
            throw UsageError(std::string(name) + ": expected a model that " + expected + ", got " + opened.name +
                             ", which does not");
    };
    refuse(options.n_beams && !translates, "--beams", "writes one text from another");
    refuse(options.seconds > 0 && !hears, "--seconds", "hears and writes");
    refuse(options.words && !hears, "--words", "hears and writes");
    refuse(options.limits.max_batch && (translates || hears), "--batch", "has one stack");
    if (options.limits.max_kv_len) opened.need_logits();  // others cache no positions, or as many as they have
}

}  // namespace

MemoryPlan plan_session(const std::string& name, const Config& config, const Limits& limits) {
    MemoryPlan made;
    require(make_plan(config, limits, made.plan), name);
    const Limits& settled = made.plan.limits;
    made.heading = "arena: " + std::to_string(settled.max_kv_len) + " positions, " + std::to_string(settled.max_batch) +
                   " tokens together, " + threads_words(settled.n_threads);
    return made;
}

MemoryPlan plan_memory(const host::Opened& opened, const PlanOptions& options) {
    const bool translates = translates_by_run(opened), hears = transcribes(opened);
    check(opened, options, translates, hears);
    if (translates) return plan_run(opened, options);
    return hears ? plan_transcribe(opened, options) : plan_session(opened.name, opened.model.config(), options.limits);
}

}  // namespace fovea
