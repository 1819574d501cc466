// Models that are on offer, loaded and unloaded while the server runs, within a budget of bytes that counts their files and all that
// they take. A thread of its own opens files and takes memory, so that nothing else waits for either.
//
// What is wanted is served by turns: the first who waits for room gets it. Room is made by models that nobody uses, the least
// recently used first; if they are not enough, models in use take no new requests until theirs have ended.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "serve/api/service.h"
#include "serve/jobs/preparer.h"

namespace fovea::serve {

/// A model that requests may name before it is loaded.
struct OfferedModel {
    std::string name;
    std::function<host::Opened()> open;  ///< with its adapters; throws host::Error. Called by the loader's thread
};

/// A request that waits for a model.
struct Waiter {
    AwaitedModel wanted;
    std::string user;
    Clock::time_point deadline;
    std::shared_ptr<const bool> gone;                   ///< nobody waits any more
    std::function<void(const Failure& failure)> go_on;  ///< status 0: it is as was wanted
    Clock::time_point since = Clock::now();
    Failure failure{};
};

/// Used by the thread that speaks HTTP, but for its own.
class ModelLoader {
public:
    /// Calls of that thread: soon, or after a time.
    struct Post {
        std::function<void(std::function<void()>)> now;
        std::function<void(std::chrono::milliseconds, std::function<void()>)> later;
    };
    /// Adds a slot for each model, which is planned, so that all is known of it but what is wrong with a file.
    ///   budget  bytes of all models that are loaded at once, those that always are too
    /// All but the offered must outlive this. Before the scheduler starts. Throws host::Error where the others exceed the budget.
    ModelLoader(std::vector<OfferedModel> offered, std::uint64_t budget, const WorkerOptions& options,
                const DefaultSeed& seed, Metrics& metrics, Scheduler& scheduler, Service& service, Post post);

    /// Calls waiter.go_on once, maybe at once. False where too many wait: nothing is kept then.
    [[nodiscard]] bool await(Waiter waiter);
    /// Does what is to be done: to be called when a model may have been asked to leave.
    void settle();
    /// What their requests may take beside the budget, at most.
    [[nodiscard]] std::uint64_t later_bytes() const { return later_bytes_; }

private:
    /// A model, or why there is none.
    struct Loaded {
        std::shared_ptr<const host::Opened> opened{};
        std::unique_ptr<ModelEntry> entry{};  ///< null: it is planned only
        ModelFacts facts{};
        Work work{};
        std::uint64_t n_bytes = 0, later_bytes = 0;
        std::string error{};
    };
    [[nodiscard]] std::unique_ptr<Worker> plan(const ModelSlot& slot, Loaded& planned) const;
    [[nodiscard]] Loaded load(const ModelSlot& slot, std::uint64_t n_bytes);
    void learn(ModelSlot& slot, Loaded& loaded);
    void begin_load(ModelSlot& slot, const std::string& user);
    void end_load(ModelSlot& slot, Loaded loaded);
    void begin_unload(ModelSlot& slot);
    void work_beside(const std::string& user, std::function<void()> work, std::function<void()> then);
    void schedule();
    [[nodiscard]] bool make_room(Waiter& waiter, std::uint64_t n_bytes);
    [[nodiscard]] bool answer_one();
    [[nodiscard]] bool is_ready(Waiter& waiter) const;
    [[nodiscard]] bool watches() const;

    const std::vector<OfferedModel> offered_;
    const std::uint64_t budget_;
    const WorkerOptions options_;
    const DefaultSeed seed_;
    Metrics& metrics_;
    Scheduler& scheduler_;
    Service& service_;
    const Post post_;
    const std::size_t first_;    // of the offered among all slots
    std::uint64_t n_taken_ = 0;  // bytes of what is loaded, is being loaded, or is being unloaded
    std::uint64_t later_bytes_ = 0;
    bool settles_ = false, comes_back_ = false;
    std::list<Waiter> waiting_;
    Preparer thread_;
};

}  // namespace fovea::serve
