#include "serve/jobs/scheduler.h"

namespace fovea::serve {

Scheduler::Scheduler(const std::vector<host::Opened>& models, const WorkerOptions& options, Metrics& metrics) {
    for (const host::Opened& served : models) {
        workers_.push_back(make_worker(served, options, metrics.models[served.name]));
        workers_.back()->wake = [this] { bell_.ring(); };
    }
}

void Scheduler::start() {
    std::promise<void> begun;
    std::future<void> result = begun.get_future();
    thread_ = std::thread([this, promise = std::move(begun)]() mutable { run(std::move(promise)); });
    result.get();
}

void Scheduler::run(std::promise<void> begun) {
    try {
        for (const auto& worker : workers_) worker->begin();
    } catch (...) {
        return begun.set_exception(std::current_exception());
    }
    begun.set_value();
    while (!stops_) {
        bool computed = false;
        for (const auto& worker : workers_) computed |= worker->turn();
        if (!computed) bell_.wait();
    }
    for (const auto& worker : workers_) worker->fail_all({503, "server: it is stopping"});
}

bool Scheduler::submit(std::size_t model, const JobPtr& job) {
    if (!workers_[model]->queue.push(job)) return false;
    bell_.ring();
    return true;
}

void Scheduler::stop() {
    stops_ = true;
    bell_.ring();
    if (thread_.joinable()) thread_.join();
}

std::uint64_t Scheduler::sum(std::uint64_t (Worker::*bytes)() const) const {
    std::uint64_t sum = 0;
    for (const auto& worker : workers_) sum += ((*worker).*bytes)();
    return sum;
}

}  // namespace fovea::serve
