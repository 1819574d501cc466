#include "serve/jobs/scheduler.h"

#include "host/base/error.h"
#include "serve/jobs/processor_share.h"

namespace fovea::serve {

Scheduler::Scheduler(const std::vector<host::Opened>& models, const WorkerOptions& options, Metrics& metrics) {
    for (const host::Opened& served : models) {
        workers_.push_back(make_worker(served, options, metrics.models[served.name]));
        workers_.back()->take_memory();
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
    ask_for_slices(std::chrono::milliseconds(10));  // others, such as HTTP, run as soon as they wake
    try {
        for (const auto& worker : workers_)
            if (worker) worker->begin();
    } catch (...) {
        return begun.set_exception(std::current_exception());
    }
    begun.set_value();
    while (!stops_) {
        if (has_exchanges_) exchange_all();
        if (!turn_all()) bell_.wait();
    }
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    exchange_all();
    for (const auto& worker : workers_)
        if (worker) worker->fail_all({503, "server: it is stopping"});
}

/// A turn of each. False: none had anything to do.
bool Scheduler::turn_all() {
    bool computed = false;
    for (const auto& worker : workers_)
        if (worker) computed |= worker->turn();
    return computed;
}

std::size_t Scheduler::add_place() {
    workers_.emplace_back();
    return workers_.size() - 1;
}

std::unique_ptr<Worker> Scheduler::exchange(std::size_t model, std::unique_ptr<Worker> worker) {
    std::future<std::unique_ptr<Worker>> old;
    {
        const std::lock_guard lock(mutex_);
        if (ended_) throw host::Error("server: it is stopping");
        exchanges_.push_back({model, std::move(worker), {}});
        old = exchanges_.back().old.get_future();
        has_exchanges_ = true;
    }
    bell_.ring();
    return old.get();
}

void Scheduler::exchange_all() {
    std::vector<Exchange> wanted;
    {
        const std::lock_guard lock(mutex_);
        wanted.swap(exchanges_);
        has_exchanges_ = false;
    }
    for (Exchange& one : wanted) exchange_one(one);
}

void Scheduler::exchange_one(Exchange& wanted) {
    std::unique_ptr<Worker>& place = workers_[wanted.model];
    try {
        if (place) place->fail_all({503, "server: its model leaves"});  // what it keeps of texts that have ended
        std::unique_ptr<Worker> old = std::exchange(place, nullptr);
        if (wanted.worker) {
            wanted.worker->wake = [this] { bell_.ring(); };
            wanted.worker->begin();
            place = std::move(wanted.worker);
        }
        wanted.old.set_value(std::move(old));
    } catch (...) {
        wanted.old.set_exception(std::current_exception());
    }
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
    for (const auto& worker : workers_)
        if (worker) sum += ((*worker).*bytes)();
    return sum;
}

}  // namespace fovea::serve
