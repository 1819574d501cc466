// One model's part of the engine: jobs go into its queue, and each turn computes one pass for those that run.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "fovea/model.h"
#include "fovea/tokenizer.h"
#include "fovea/workspace.h"
#include "serve/jobs/fair_queue.h"
#include "serve/jobs/job.h"
#include "serve/jobs/metrics.h"

namespace fovea::serve {

struct WorkerOptions {
    std::uint32_t n_threads = 1;
    const char* isa = nullptr;             ///< nullptr: the best
    std::uint32_t context = 0;             ///< positions of a sequence; 0: the model's, at most 4,096, of vectors 8,192
    std::uint32_t n_sequences = 8;         ///< that are computed at the same time
    std::uint32_t n_positions = 0;         ///< of all caches together; 0: four whole contexts, or n_sequences if fewer
    std::uint32_t max_source = 0;          ///< tokens of a text that another is written from; 0: as many as the context
    std::uint32_t n_source_positions = 0;  ///< of all of them together; 0: as n_positions
    std::uint32_t max_batch = 192;         ///< rows of a pass
    std::uint32_t n_beside = 64;           ///< of those, of prompts, in a pass that others' next tokens wait for
    std::uint32_t n_viewed = 0;            ///< tokens of a text whose attention is shown, at most; 0: none is
    std::size_t queue_capacity = 256;
    Type kv_type = Type::f32;
    std::map<std::string, const host::Opened*> drafts{};  ///< by a model's name: what proposes its texts' tokens
    bool drafts_always = false;                           ///< also if it does not pay
};

/// What a job is told whose time is over.
inline const Failure kLate{504, "time: expected an answer before the server's deadline, got none"};
inline const Failure kUnread{
    504,
    "client: expected it to read its answer while others waited for the place, got 15 seconds in which it did not"};
/// What a job is told that ends while it waits.
[[nodiscard]] inline Failure why_ended(Job& job, Clock::time_point now) {
    if (job.given_up)
        return {429, "queue: expected fewer waiting requests of one client, got the most of all; try again later"};
    return job.is_unread(now) ? kUnread : kLate;
}

/// What a rank does that follows the first.
using Follow = std::function<void(const Workspace&, const CachePool& pool, const CachePool& memories)>;

class Worker {
public:
    explicit Worker(std::size_t queue_capacity, std::uint32_t max_running = ~std::uint32_t{0})
        : queue(queue_capacity, max_running) {}
    virtual ~Worker() = default;
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Takes the memory that it has planned. From any thread. Throws host::Error.
    virtual void take_memory() = 0;
    /// One pass, by the scheduler's thread, always the same one. False: nothing was there to do.
    [[nodiscard]] virtual bool turn() = 0;
    /// Ends everything that runs and waits with this failure. By the scheduler's thread.
    virtual void fail_all(const Failure& failure) = 0;
    /// Called by the scheduler's thread before its first turn: what must be made by the thread that computes.
    virtual void begin() = 0;
    /// In place of turns, where the first rank has this worker with the same plan: calls `by` with its memory, with no pools for
    /// vectors. Speech does not follow.
    virtual void follow(const Follow& by) { (void)by; }

    [[nodiscard]] virtual std::uint32_t context() const = 0;  ///< tokens of a prompt and its answer, or of a text
    [[nodiscard]] virtual std::uint32_t max_prompt() const { return context(); }  ///< tokens of one
    [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;  ///< that take_memory takes; nothing is taken later
    [[nodiscard]] virtual Work work() const = 0;
    /// What its requests may take beside that, at most.
    [[nodiscard]] virtual std::uint64_t later_bytes() const { return 0; }
    /// Pages that nobody gave back, once all has ended: 0, or something is wrong here.
    [[nodiscard]] virtual std::uint32_t n_lost_pages() const { return 0; }

    FairQueue queue;
    std::function<void()> wake;                 ///< has the scheduler's thread come round again; set before begin
    std::shared_ptr<const host::Opened> model;  ///< what it computes with, where it shares that; null: another has it

protected:
    void fail_waiting(const Failure& failure) {
        while (const JobPtr job = queue.front()) {
            queue.pop(job);
            job->fail(failure);
        }
    }
};

/// Plans a worker; `take_memory` and `begin` make it ready. A model for logits, of one stack or of two: texts. A model that pools: vectors.
/// One that hears and writes: speech. Throws host::Error where it is neither.
[[nodiscard]] std::unique_ptr<Worker> make_text_worker(const host::Opened& served, const WorkerOptions& options,
                                                       ModelMetrics& metrics);
[[nodiscard]] std::unique_ptr<Worker> make_speech_worker(const host::Opened& served, const WorkerOptions& options,
                                                         ModelMetrics& metrics);
[[nodiscard]] std::unique_ptr<Worker> make_worker(const host::Opened& served, const WorkerOptions& options,
                                                  ModelMetrics& metrics);

}  // namespace fovea::serve
