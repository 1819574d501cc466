#include "serve/jobs/fair_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fovea::serve {

FairQueue::User& FairQueue::user(const std::string& name) {
    const auto found = users_.find(name);
    if (found != users_.end()) return found->second;
    std::uint64_t least = users_.empty() ? 0 : ~std::uint64_t{0};
    for (const auto& [other, state] : users_) least = std::min(least, state.n_served);
    User& made = users_[name];
    made.n_served = least;
    return made;
}

void FairQueue::forget_if_gone(const std::string& name) {
    const auto found = users_.find(name);
    if (found != users_.end() && found->second.waiting.empty() && found->second.n_running == 0) users_.erase(found);
}

/// The first job of a user may have begun; the newest of several has not.
bool FairQueue::make_room(const std::string& name) {
    const auto n_waiting = [](const auto& entry) { return entry.second.waiting.size(); };
    const auto most = std::ranges::max_element(users_, {}, n_waiting);
    const auto own = users_.find(name);
    if (most == users_.end() || n_waiting(*most) < (own == users_.end() ? 0 : n_waiting(*own)) + 2) return false;
    most->second.waiting.back()->given_up = true;
    given_up_.push_back(std::move(most->second.waiting.back()));
    most->second.waiting.pop_back();
    --n_waiting_;
    return true;
}

bool FairQueue::push(JobPtr job) {
    const std::lock_guard lock(mutex_);
    if (n_waiting_ >= capacity_ && !make_room(job->user)) return false;
    user(job->user).waiting.push_back(std::move(job));
    ++n_waiting_;
    return true;
}

JobPtr FairQueue::front() {
    const std::lock_guard lock(mutex_);
    const auto rank = [](const User& state, const Job& job) {
        return std::tuple(state.n_served, state.n_running, job.arrived);
    };
    decltype(rank(User{}, Job{})) least;
    JobPtr first;
    for (const auto& [name, state] : users_) {
        if (state.n_running >= max_running_) continue;
        const auto is_read = [](const JobPtr& job) { return !job->is_slow(); };
        const auto found = std::ranges::find_if(state.waiting, is_read);
        if (found == state.waiting.end() || (first && rank(state, **found) >= least)) continue;
        first = *found;
        least = rank(state, *first);
    }
    return first;
}

void FairQueue::put_back(const JobPtr& job) {
    const std::lock_guard lock(mutex_);
    std::deque<JobPtr>& waiting = user(job->user).waiting;
    if (std::ranges::find(waiting, job) != waiting.end()) return;
    waiting.push_front(job);
    ++n_waiting_;
}

void FairQueue::pop(const JobPtr& job) {
    const std::lock_guard lock(mutex_);
    const auto found = users_.find(job->user);
    if (found == users_.end()) return;
    n_waiting_ -= std::erase(found->second.waiting, job);
    forget_if_gone(job->user);
}

std::vector<JobPtr> FairQueue::take_ended(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    std::vector<JobPtr> ended = std::exchange(given_up_, {});
    for (auto at = users_.begin(); at != users_.end();) {
        std::deque<JobPtr>& waiting = at->second.waiting;
        const auto goes_on = [&](const JobPtr& job) { return !job->is_over(now) && !job->is_unread(now); };
        const auto gone = std::stable_partition(waiting.begin(), waiting.end(), goes_on);
        n_waiting_ -= static_cast<std::size_t>(waiting.end() - gone);
        ended.insert(ended.end(), gone, waiting.end());
        waiting.erase(gone, waiting.end());
        at = waiting.empty() && at->second.n_running == 0 ? users_.erase(at) : std::next(at);
    }
    return ended;
}

std::uint64_t FairQueue::served(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = users_.find(name);
    return found == users_.end() ? 0 : found->second.n_served;
}

void FairQueue::charge(const std::string& name, std::uint64_t n_tokens) {
    const std::lock_guard lock(mutex_);
    const auto found = users_.find(name);
    if (found != users_.end()) found->second.n_served += n_tokens;
}

void FairQueue::hold(const std::string& name) {
    const std::lock_guard lock(mutex_);
    ++user(name).n_running;
}

void FairQueue::release(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = users_.find(name);
    if (found == users_.end()) return;
    --found->second.n_running;
    forget_if_gone(name);
}

std::size_t FairQueue::size() {
    const std::lock_guard lock(mutex_);
    return n_waiting_;
}

}  // namespace fovea::serve
