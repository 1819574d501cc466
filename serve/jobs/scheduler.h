// The one thread that computes: it goes round the models, a pass for each that has work, and sleeps when none has. Models may come
// and go while it runs.
#pragma once
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/jobs/worker.h"

namespace fovea::serve {

class Scheduler {
public:
    /// Takes all memory of all models. Throws host::Error. `models` must outlive it.
    Scheduler(const std::vector<host::Opened>& models, const WorkerOptions& options, Metrics& metrics);
    ~Scheduler() { stop(); }
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Starts the thread; throws host::Error where a model cannot be run.
    void start();
    /// False where the model's queue is full. From any thread.
    [[nodiscard]] bool submit(std::size_t model, const JobPtr& job);
    /// A place for one more model, which has none yet; its number. Before start.
    [[nodiscard]] std::size_t add_place();
    /// Puts `worker`, which has taken its memory (null: none), into a place; the one that was there, whose queue is to be empty.
    /// Returns once the scheduler's thread has done so, between two passes. From any other thread. Throws host::Error where the
    /// model cannot be run or the scheduler has stopped: the place is empty then.
    std::unique_ptr<Worker> exchange(std::size_t model, std::unique_ptr<Worker> worker);
    /// Somebody has hung up, or has read what it was slow to read.
    void ring() { bell_.ring(); }
    /// Fails what is not finished, and ends the thread.
    void stop();

    /// Whose model is there.
    [[nodiscard]] Worker& worker(std::size_t model) { return *workers_[model]; }
    [[nodiscard]] const Worker& worker(std::size_t model) const { return *workers_[model]; }
    [[nodiscard]] std::uint64_t memory_bytes() const { return sum(&Worker::memory_bytes); }
    [[nodiscard]] std::uint64_t later_bytes() const { return sum(&Worker::later_bytes); }

private:
    /// What a place is to have.
    struct Exchange {
        std::size_t model;
        std::unique_ptr<Worker> worker;
        std::promise<std::unique_ptr<Worker>> old;
    };
    void run(std::promise<void> begun);
    void exchange_all();
    void exchange_one(Exchange& wanted);
    [[nodiscard]] bool turn_all();
    [[nodiscard]] std::uint64_t sum(std::uint64_t (Worker::*bytes)() const) const;

    std::vector<std::unique_ptr<Worker>> workers_;  // null: no model is there
    std::mutex mutex_;
    std::vector<Exchange> exchanges_;  // that are asked for; guarded, as is
    bool ended_ = false;               // that none is done any more
    std::atomic<bool> has_exchanges_{false};
    Bell bell_;
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

}  // namespace fovea::serve
