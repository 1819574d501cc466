#include "serve/api/service.h"

namespace fovea::serve {
namespace {

std::string words_of(Work work) { return work == Work::text ? "text" : work == Work::vectors ? "vectors" : "speech"; }

}  // namespace

Service::Service(const std::vector<host::Opened>& models, const Scheduler& scheduler, const Metrics& metrics_,
                 const WorkerOptions& options, const DefaultSeed& seed)
    : metrics(metrics_), n_viewed(options.n_viewed), n_sequences(options.n_sequences) {
    for (const host::Opened& served : models) {
        const Worker& worker = scheduler.worker(models_.size());
        const Work work = worker.work();
        models_.push_back({served, models_.size(), work, worker.context(), worker.memory_bytes(),
                           PromptReader(served, worker.max_prompt(), work == Work::text), Forms(served.tokenizer),
                           OwnSampling::of(served.model, served.name), seed});
    }
}

std::uint64_t Service::memory_bytes() const {
    std::uint64_t bytes = 0;
    for (const ModelEntry& entry : models_) bytes += entry.prompts.memory_bytes();
    return bytes;
}

ModelEntry& Service::find(const std::string& name, std::optional<Work> work, bool (*suits)(const ModelEntry&)) {
    std::string names;
    std::size_t n_fit = 0, n_suit = 0;
    ModelEntry *fit = nullptr, *suit = nullptr;
    for (ModelEntry& entry : models_) {
        const std::string& its = entry.served.name;
        const bool is_named = its == name || its + ":latest" == name, fits = !work || entry.work == *work;
        if (is_named && !fits)
            refuse("model", "one for " + words_of(*work), name + ", which is for " + words_of(entry.work));
        if (is_named) return entry;
        names += (names.empty() ? "" : ", ") + its;
        if (!fits) continue;
        ++n_fit;
        fit = &entry;
        if (!suits || !suits(entry)) continue;
        ++n_suit;
        suit = &entry;
    }
    if (name.empty() && n_fit == 1) return *fit;
    if (name.empty() && n_suit == 1) return *suit;
    const std::string expected =
        n_fit || !work ? "one of " + names : "one for " + words_of(*work) + ", which none of " + names + " is";
    throw RequestError(404, "model: expected " + expected + ", got " + (name.empty() ? "none" : name.substr(0, 100)),
                       "model", "model_not_found");
}

}  // namespace fovea::serve
