// Jobs that wait for a model: a bounded number, taken by turns so that nobody who asks for much delays those who ask for
// little. Any thread may push; the scheduler's thread alone does the rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "serve/jobs/job.h"

namespace fovea::serve {

/// Whose turn it is follows from tokens computed: the next job is the oldest of the user who had the fewest. Whoever comes
/// back from a pause starts level with the least served of those who are there.
/// Source: Sheng et al. 2024 (virtual token counter).
class FairQueue {
public:
    explicit FairQueue(std::size_t capacity) : capacity_(capacity) {}

    /// False where the queue is full: nothing is kept then.
    [[nodiscard]] bool push(JobPtr job);
    /// The job whose turn it is; null: none waits.
    [[nodiscard]] JobPtr front();
    /// That job has started in full, or is given up.
    void pop(const JobPtr& job);
    /// Takes out all that nobody waits for any more, and those whose deadline has passed.
    [[nodiscard]] std::vector<JobPtr> take_ended(Clock::time_point now);
    /// So many tokens were computed for this user.
    void charge(const std::string& user, std::uint64_t n_tokens);
    /// A choice of this user's runs, or has ended: a user is remembered as long as one does or a job waits.
    void hold(const std::string& user);
    void release(const std::string& user);

    [[nodiscard]] std::size_t size();

private:
    struct User {
        std::deque<JobPtr> waiting;
        std::uint64_t n_served = 0;   // tokens
        std::uint32_t n_running = 0;  // choices
    };
    User& user(const std::string& name);
    void forget_if_gone(const std::string& name);

    std::mutex mutex_;
    const std::size_t capacity_;
    std::size_t n_waiting_ = 0;
    std::map<std::string, User> users_;
};

}  // namespace fovea::serve
