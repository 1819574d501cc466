// What a job needs before it can be queued and may take seconds: the form of its answer. A thread beside the one that reads requests
// and the one that computes does it.
#pragma once
#include <atomic>
#include <thread>

#include "serve/jobs/fair_queue.h"

namespace fovea::serve {

/// Calls each job's `prepare`, then its `prepared`. Whose turn it is follows from the time that users' jobs took.
class Preparer {
public:
    /// `capacity`: jobs that wait at most.
    explicit Preparer(std::size_t capacity);
    /// Ends after the job that is under way. What waits is forgotten.
    ~Preparer();
    Preparer(const Preparer&) = delete;
    Preparer& operator=(const Preparer&) = delete;

    /// False where too many wait: nothing is kept then.
    [[nodiscard]] bool submit(const JobPtr& job);

private:
    void run();
    void prepare(Job& job);

    FairQueue queue_;
    Bell bell_;
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

}  // namespace fovea::serve
