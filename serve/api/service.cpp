#include "serve/api/service.h"

#include "serve/api/endpoint.h"
#include "serve/api/model_facts.h"

namespace fovea::serve {
namespace {

std::string words_of(Work work) { return work == Work::text ? "text" : work == Work::vectors ? "vectors" : "speech"; }

}  // namespace

Service::Service(const std::vector<host::Opened>& models, const Scheduler& scheduler, const Metrics& metrics_,
                 const WorkerOptions& options, const DefaultSeed& seed, std::uint64_t stored_bytes)
    : metrics(metrics_),
      n_viewed(options.n_viewed),
      n_sequences(options.n_sequences),
      stored(std::make_shared<StoredResponses>(stored_bytes)) {
    for (const host::Opened& served : models) {
        auto entry = std::make_unique<ModelEntry>(served, scheduler.worker(slots.size()), slots.size(), seed);
        ModelFacts facts = facts_of(*entry, started);
        slots.push_back({.name = served.name,
                         .index = entry->index,
                         .work = entry->work,
                         .entry = std::move(entry),
                         .facts = std::move(facts),
                         .use = std::make_shared<const int>(),
                         .state = ModelState::loaded});
    }
}

std::uint64_t Service::memory_bytes() const {
    std::uint64_t bytes = 0;
    for (const ModelSlot& slot : slots)
        if (slot.entry) bytes += slot.entry->prompts.memory_bytes();
    return bytes;
}

ModelSlot& Service::find_slot(const std::string& name, std::optional<Work> work, std::optional<ModelTask> task) {
    std::string names;
    std::size_t n_fit = 0, n_suit = 0;
    ModelSlot *fit = nullptr, *suit = nullptr;
    for (ModelSlot& slot : slots) {
        const std::string& its = slot.name;
        const bool is_named = its == name || its + ":latest" == name, fits = !work || !slot.work || slot.work == *work;
        if (is_named && !fits)
            refuse("model", "one for " + words_of(*work), name + ", which is for " + words_of(*slot.work));
        if (is_named) return slot;
        names += (names.empty() ? "" : ", ") + its;
        if (!fits || !slot.work) continue;
        ++n_fit;
        fit = &slot;
        if (slot.facts.task != task) continue;
        ++n_suit;
        suit = &slot;
    }
    if (name.empty() && n_fit == 1) return *fit;
    if (name.empty() && n_suit == 1) return *suit;
    const std::string expected =
        n_fit || !work ? "one of " + names : "one for " + words_of(*work) + ", which none of " + names + " is";
    throw RequestError(404, "model: expected " + expected + ", got " + (name.empty() ? "none" : name.substr(0, 100)),
                       "model", "model_not_found");
}

ModelEntry& Service::find(Call& call, const std::string& name, std::optional<Work> work,
                          std::optional<ModelTask> task) {
    const std::lock_guard lock(changes);
    ModelSlot& slot = find_slot(name, work, task);
    if (!slot.entry || (slot.is_closed && call.use != slot.use)) throw AwaitedModel{slot.index, true};
    count_use(slot);
    slot.leaves = false;
    call.use = slot.use;
    return *slot.entry;
}

const ModelSlot& Service::let_go(const std::string& name, std::optional<Work> work, std::optional<ModelTask> task) {
    const std::lock_guard lock(changes);
    const ModelSlot& slot = find_slot(name, work, task);
    if (slot.is_offered && slot.state != ModelState::unloaded) throw AwaitedModel{slot.index, false};
    return slot;
}

void Service::let_go_later(const ModelEntry& entry) {
    const std::lock_guard lock(changes);
    slots[entry.index].leaves = slots[entry.index].is_offered;
}

const ModelEntry& Service::first_of(Work work) const {
    const ModelEntry* first = nullptr;
    for (const ModelSlot& slot : slots) {
        if (!slot.entry) continue;
        if (slot.work == work) return *slot.entry;
        if (!first) first = &*slot.entry;
    }
    if (!first) throw RequestError(404, "model: expected one that is loaded, got none", "model", "model_not_found");
    return *first;
}

}  // namespace fovea::serve
