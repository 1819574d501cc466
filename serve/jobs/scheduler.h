// The one thread that computes: it goes round the models, a pass for each that has work, and sleeps when none has.
#pragma once
#include <exception>
#include <future>
#include <memory>
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
    /// Somebody has hung up, or has read what it was slow to read.
    void ring() { bell_.ring(); }
    /// Fails what is not finished, and ends the thread.
    void stop();

    [[nodiscard]] Worker& worker(std::size_t model) { return *workers_[model]; }
    [[nodiscard]] const Worker& worker(std::size_t model) const { return *workers_[model]; }
    [[nodiscard]] std::uint64_t memory_bytes() const { return sum(&Worker::memory_bytes); }
    [[nodiscard]] std::uint64_t later_bytes() const { return sum(&Worker::later_bytes); }

private:
    void run(std::promise<void> begun);
    [[nodiscard]] std::uint64_t sum(std::uint64_t (Worker::*bytes)() const) const;

    std::vector<std::unique_ptr<Worker>> workers_;
    Bell bell_;
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

}  // namespace fovea::serve
