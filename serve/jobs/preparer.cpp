#include "serve/jobs/preparer.h"

#include "serve/jobs/processor_share.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {

Preparer::Preparer(std::size_t capacity) : queue_(capacity, ~std::uint32_t{0}), thread_([this] { run(); }) {}

Preparer::~Preparer() {
    stops_ = true;
    bell_.ring();
    thread_.join();
    while (const JobPtr job = queue_.front()) {
        queue_.pop(job);
        job->prepared = nullptr;  // which holds the job
    }
    for (const JobPtr& job : queue_.take_ended(Clock::now())) job->prepared = nullptr;
}

bool Preparer::submit(const JobPtr& job) {
    if (!queue_.push(job)) return false;
    bell_.ring();
    return true;
}

void Preparer::run() {
    work_behind_others();  // whose tokens come first
    while (!stops_) {
        const auto now = Clock::now();
        for (const JobPtr& job : queue_.take_ended(now)) {
            job->prepare = nullptr;
            std::exchange(job->prepared, nullptr)(why_ended(*job, now));
        }
        const JobPtr job = queue_.front();
        if (!job) {
            bell_.wait();
            continue;
        }
        prepare(*job);
        queue_.pop(job);
    }
}

void Preparer::prepare(Job& job) {
    const auto begun = Clock::now();
    const Failure failure = job.prepare();
    job.prepare = nullptr;
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun);
    queue_.charge(job.user, static_cast<std::uint64_t>(time.count()));
    std::exchange(job.prepared, nullptr)(failure);
}

}  // namespace fovea::serve
