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
    /// `max_running`: choices of a user that run, beyond which it is others' turn.
    explicit FairQueue(std::size_t capacity, std::uint32_t max_running)
        : capacity_(capacity), max_running_(max_running) {}

    /// A full queue gives up the newest job of whoever has the most, where that is at least two more than this user has. False:
    /// it is full of others' turns, and nothing is kept.
    [[nodiscard]] bool push(JobPtr job);
    /// The job whose turn it is; null: none waits, or none whose client reads.
    [[nodiscard]] JobPtr front();
    /// A job that has started waits again, as its user's first, however full the queue is.
    void put_back(const JobPtr& job);
    /// That job has started in full, or is given up.
    void pop(const JobPtr& job);
    /// Takes out all that nobody waits for or reads any more, those whose deadline has passed, and those that were given up for others.
    [[nodiscard]] std::vector<JobPtr> take_ended(Clock::time_point now);
    /// Tokens that were computed for a user who waits or runs.
    [[nodiscard]] std::uint64_t served(const std::string& user);
    /// So many more were.
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
    [[nodiscard]] bool make_room(const std::string& name);

    std::mutex mutex_;
    const std::size_t capacity_;
    const std::uint32_t max_running_;
    std::size_t n_waiting_ = 0;
    std::map<std::string, User> users_;
    std::vector<JobPtr> given_up_;  // for others
};

}  // namespace fovea::serve
