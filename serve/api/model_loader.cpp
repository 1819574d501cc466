#include "serve/api/model_loader.h"

#include <algorithm>
#include <tuple>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "serve/api/model_facts.h"

namespace fovea::serve {
namespace {

constexpr std::chrono::milliseconds kLook{20};    // between looks at models in use that somebody waits for
constexpr std::chrono::milliseconds kGrace{500};  // in which a model may become idle for who does not wait for one

/// Has the system read a file, so that the first pass does not wait for it.
void read_pages(std::span<const std::byte> bytes) {
    constexpr std::size_t kPage = 4096;
    volatile std::byte last{};
    for (std::size_t at = 0; at < bytes.size(); at += kPage) last = bytes[at];
    (void)last;
}

/// Freed memory goes back to the system, which the allocator would keep some of.
void give_back() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

std::uint64_t file_bytes(const host::Opened& opened) {
    std::uint64_t n = opened.model.bytes().size();
    for (const host::OpenedAdapter& adapter : opened.adapters) n += adapter.model.bytes().size();
    return n;
}

Failure no_room(const std::string& expected, std::uint64_t most, const ModelSlot& slot, int status) {
    return {status,
            "memory: expected a model of at most " + std::to_string(most) + " bytes" + expected + ", got " + slot.name +
                ", which takes " + std::to_string(slot.n_bytes),
            "model"};
}

}  // namespace

ModelLoader::ModelLoader(std::vector<OfferedModel> offered, std::uint64_t budget, const WorkerOptions& options,
                         const DefaultSeed& seed, Metrics& metrics, Scheduler& scheduler, Service& service, Post post)
    : offered_(std::move(offered)),
      budget_(budget),
      options_(options),
      seed_(seed),
      metrics_(metrics),
      scheduler_(scheduler),
      service_(service),
      post_(std::move(post)),
      first_(service.slots.size()),
      thread_(offered_.size() + 1) {
    for (ModelSlot& slot : service.slots) {
        const ModelEntry& entry = *slot.entry;
        slot.n_bytes = file_bytes(entry.served) + entry.memory_bytes + entry.prompts.memory_bytes();
        if (const auto draft = options.drafts.find(entry.served.name); draft != options.drafts.end())
            slot.n_bytes += file_bytes(*draft->second);
        n_taken_ += slot.n_bytes;
    }
    if (!offered_.empty() && n_taken_ > budget)
        throw host::Error("--memory: expected " + std::to_string(n_taken_) +
                          " bytes or more, which the models beside the folder take, got " + std::to_string(budget));
    for (const OfferedModel& one : offered_) {
        service.slots.push_back({.name = one.name,
                                 .index = scheduler.add_place(),
                                 .use = std::make_shared<const int>(),
                                 .is_offered = true});
        (void)metrics.models[one.name];
        ModelSlot& slot = service.slots.back();
        try {
            Loaded planned;
            (void)plan(slot, planned);
            later_bytes_ += planned.later_bytes;
            learn(slot, planned);
        } catch (const host::Error& error) {
            slot.error = error.what();
        }
    }
}

/// Opens the model and plans what computes it: no memory is taken yet.
std::unique_ptr<Worker> ModelLoader::plan(const ModelSlot& slot, Loaded& planned) const {
    planned.opened = std::make_shared<const host::Opened>(offered_[slot.index - first_].open());
    const host::Opened& opened = *planned.opened;
    std::unique_ptr<Worker> worker = make_worker(opened, options_, metrics_.models.at(slot.name));
    const PlannedModel model(opened, *worker);
    planned.facts = facts_of(model, service_.started);
    planned.work = model.work;
    planned.n_bytes =
        file_bytes(opened) + model.memory_bytes + PromptReader::planned_bytes(opened, worker->max_prompt());
    planned.later_bytes = worker->later_bytes();
    return worker;
}

/// By the loader's thread. Where the plan is not of n_bytes, for the file is another now, nothing is taken.
ModelLoader::Loaded ModelLoader::load(const ModelSlot& slot, std::uint64_t n_bytes) {
    Loaded loaded;
    try {
        std::unique_ptr<Worker> worker = plan(slot, loaded);
        if (loaded.n_bytes != n_bytes) return loaded;
        worker->take_memory();
        loaded.entry = std::make_unique<ModelEntry>(*loaded.opened, *worker, slot.index, seed_);
        read_pages(loaded.opened->model.bytes());
        worker->model = loaded.opened;
        (void)scheduler_.exchange(slot.index, std::move(worker));
    } catch (const std::exception& error) {
        const bool lacks_memory = dynamic_cast<const std::bad_alloc*>(&error);
        loaded = {.error = lacks_memory ? "server: out of memory" : error.what()};
    }
    return loaded;
}

void ModelLoader::learn(ModelSlot& slot, Loaded& loaded) {
    slot.work = loaded.work;
    slot.facts = std::move(loaded.facts);
    slot.n_bytes = loaded.n_bytes;
    slot.error.clear();
}

/// Has the loader's thread do the work, then calls `then` on this one.
void ModelLoader::work_beside(const std::string& user, std::function<void()> work, std::function<void()> then) {
    const auto job = std::make_shared<Job>();
    job->user = user;
    job->deadline = Clock::time_point::max();
    job->prepare = [work = std::move(work)] {
        work();
        return Failure{};
    };
    job->prepared = [this, then = std::move(then)](const Failure&) { post_.now(then); };
    (void)thread_.submit(job);  // it has a place for each model, of which one thing at a time is done
}

void ModelLoader::begin_load(ModelSlot& slot, const std::string& user) {
    slot.state = ModelState::loading;
    n_taken_ += slot.n_bytes;
    const auto loaded = std::make_shared<Loaded>();
    work_beside(
        user, [this, &slot, loaded, n_bytes = slot.n_bytes] { *loaded = load(slot, n_bytes); },
        [this, &slot, loaded] { end_load(slot, std::move(*loaded)); });
}

void ModelLoader::end_load(ModelSlot& slot, Loaded loaded) {
    {
        const std::lock_guard lock(service_.changes);
        slot.state = loaded.entry ? ModelState::loaded : ModelState::unloaded;
        if (!loaded.entry) n_taken_ -= slot.n_bytes;
        if (loaded.error.empty()) learn(slot, loaded);  // without an entry there is a new plan, for another turn
        if (loaded.entry) service_.count_use(slot);
        slot.opened = loaded.entry ? std::move(loaded.opened) : nullptr;
        slot.entry = std::move(loaded.entry);
    }
    if (!loaded.error.empty()) slot.error = loaded.error;
    for (Waiter& waiter : waiting_)
        if (!loaded.error.empty() && waiter.wanted.index == slot.index && waiter.wanted.loaded)
            waiter.failure = {500, loaded.error, "model"};
    settle();
}

void ModelLoader::begin_unload(ModelSlot& slot) {
    slot.state = ModelState::unloading;
    const auto gone = std::make_shared<Loaded>();
    gone->entry = std::move(slot.entry);
    gone->opened = std::move(slot.opened);
    const auto let_go = [this, gone, index = slot.index, &metrics = metrics_.models.at(slot.name)] {
        try {
            (void)scheduler_.exchange(index, nullptr);
            metrics.n_pages = metrics.n_free_pages = metrics.n_kept_pages = 0;
        } catch (const host::Error&) {  // the server is stopping, and has what computes the model to the end
        }
        gone->entry = nullptr;
        gone->opened = nullptr;
        give_back();
    };
    work_beside({}, let_go, [this, &slot] {
        {
            const std::lock_guard lock(service_.changes);
            slot.state = ModelState::unloaded;
            slot.leaves = false;
        }
        n_taken_ -= slot.n_bytes;
        settle();
    });
}

/// Closes models for one that wants n_bytes. False: there is no room for it now.
bool ModelLoader::make_room(Waiter& waiter, std::uint64_t n_bytes) {
    const bool waits = waiter.wanted.waits_for_room;
    std::uint64_t room = budget_ - n_taken_;
    std::vector<ModelSlot*> others, closed;
    for (ModelSlot& slot : service_.slots) {
        if (!slot.is_offered) continue;
        if (slot.state == ModelState::unloading || (slot.entry && slot.is_closed)) room += slot.n_bytes;
        if (slot.entry && !slot.is_closed && (waits || slot.is_idle())) others.push_back(&slot);
    }
    const auto rank = [](const ModelSlot* slot) { return std::tuple(!slot->is_idle(), slot->last_used); };
    std::sort(others.begin(), others.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
    for (ModelSlot* slot : others) {
        if (room >= n_bytes) break;
        slot->is_closed = true;
        closed.push_back(slot);
        room += slot->n_bytes;
    }
    if (room >= n_bytes || waits) return true;
    for (ModelSlot* slot : closed) slot->is_closed = false;
    if (Clock::now() - waiter.since < kGrace) return false;
    waiter.failure = no_room(", as models in use leave of " + std::to_string(budget_), room,
                             service_.slots[waiter.wanted.index], 503);
    return false;
}

/// Begins all loads that have room, closes models for the first that has none, and begins to unload what is closed and idle.
void ModelLoader::schedule() {
    const std::lock_guard lock(service_.changes);
    for (ModelSlot& slot : service_.slots) slot.is_closed = false;
    std::vector<bool> is_awaited(service_.slots.size());
    for (const Waiter& waiter : waiting_) {
        const std::size_t index = waiter.wanted.index;
        if (waiter.wanted.loaded)
            is_awaited[index] = true;
        else if (!is_awaited[index])  // who waited for it before has it first
            service_.slots[index].is_closed = true;
    }
    for (Waiter& waiter : waiting_) {
        ModelSlot& slot = service_.slots[waiter.wanted.index];
        if (!waiter.wanted.loaded || waiter.failure.status || slot.state != ModelState::unloaded) continue;
        if (slot.n_bytes > budget_)
            waiter.failure = no_room(" (--memory)", budget_, slot, 400);
        else if (slot.n_bytes <= budget_ - n_taken_)
            begin_load(slot, waiter.user);
        else if (make_room(waiter, slot.n_bytes))
            break;
    }
    for (ModelSlot& slot : service_.slots)
        if (slot.is_offered && slot.entry && (slot.is_closed || slot.leaves) && slot.is_idle()) begin_unload(slot);
}

bool ModelLoader::is_ready(Waiter& waiter) const {
    if (*waiter.gone) waiter.failure = {kClientLeft, {}};
    if (waiter.deadline <= Clock::now() && !waiter.failure.status) waiter.failure = kLate;
    const ModelSlot& slot = service_.slots[waiter.wanted.index];
    const bool is_as_wanted = waiter.wanted.loaded ? slot.entry && !slot.is_closed : slot.state == ModelState::unloaded;
    return waiter.failure.status || is_as_wanted;
}

/// False: none is ready.
bool ModelLoader::answer_one() {
    const auto ready = std::find_if(waiting_.begin(), waiting_.end(), [&](Waiter& waiter) { return is_ready(waiter); });
    if (ready == waiting_.end()) return false;
    const Waiter waiter = std::move(*ready);
    waiting_.erase(ready);
    waiter.go_on(waiter.failure);
    return true;
}

bool ModelLoader::await(Waiter waiter) {
    if (waiting_.size() >= options_.queue_capacity) return false;
    waiting_.push_back(std::move(waiter));
    settle();
    return true;
}

/// Whether something is to be done once somebody else has ended his work.
bool ModelLoader::watches() const {
    const std::lock_guard lock(service_.changes);
    return !waiting_.empty() ||
           std::any_of(service_.slots.begin(), service_.slots.end(), [](const ModelSlot& slot) { return slot.leaves; });
}

void ModelLoader::settle() {
    if (settles_) return;  // below it goes round until nothing is left to do
    settles_ = true;
    bool some = true;
    while (some) {  // a model that has come is used before another may want its room
        while (answer_one()) {
        }
        schedule();
        some = answer_one();
    }
    settles_ = false;
    if (comes_back_ || !watches()) return;
    comes_back_ = true;
    post_.later(kLook, [this] {
        comes_back_ = false;
        settle();
    });
}

}  // namespace fovea::serve
