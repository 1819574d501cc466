#include "host/base/ordered_work.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fovea {
namespace {

constexpr std::size_t kSlotsPerThread = 3;  // one being made, one done, one for where the pieces differ in length

class WorkingThreads {
public:
    WorkingThreads(const OrderedWork& work, std::uint32_t n_threads) : work_(work), slots_(n_slots(n_threads)) {
        try {
            threads_.reserve(n_threads - 1);
            while (threads_.size() + 1 < n_threads)
                threads_.emplace_back([this, member = threads_.size() + 1] { help(member); });
        } catch (const std::exception&) {
            // The system has no more threads, or no memory for one: those that there are do the work.
        }
    }
    WorkingThreads(const WorkingThreads&) = delete;
    WorkingThreads& operator=(const WorkingThreads&) = delete;
    ~WorkingThreads() {
        {
            const std::lock_guard lock(mutex_);
            n_to_make_ = 0;
        }
        may_make_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    void take_all() {
        for (std::uint64_t piece = 0; piece < work_.n_pieces; ++piece) {
            Slot& slot = slots_[piece % slots_.size()];
            std::unique_lock lock(mutex_);
            while (!slot.made)
                if (can_make())
                    make_next(lock, 0);
                else
                    is_made_.wait(lock);
            lock.unlock();
            if (slot.failure) std::rethrow_exception(slot.failure);
            work_.take(piece, piece % slots_.size());
            lock.lock();
            slot.made = false;
            ++n_taken_;
            may_make_.notify_one();
        }
    }

private:
    struct Slot {
        bool made = false;
        std::exception_ptr failure = {};
    };

    [[nodiscard]] bool can_make() const { return next_ < n_to_make_ && next_ < n_taken_ + slots_.size(); }

    void make_next(std::unique_lock<std::mutex>& lock, std::size_t member) {
        const std::uint64_t piece = next_++;
        const std::size_t index = piece % slots_.size();
        std::exception_ptr failure;
        lock.unlock();
        try {
            work_.make(piece, index, member);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        if (failure) n_to_make_ = std::min(n_to_make_, next_);  // nobody will want those behind it
        slots_[index] = {true, std::move(failure)};
        is_made_.notify_one();
    }

    void help(std::size_t member) {
        std::unique_lock lock(mutex_);
        while (next_ < n_to_make_)
            if (can_make())
                make_next(lock, member);
            else
                may_make_.wait(lock);
    }

    const OrderedWork& work_;
    std::mutex mutex_;  // of all that follows but the threads
    std::condition_variable may_make_, is_made_;
    std::vector<Slot> slots_;
    std::uint64_t n_to_make_ = work_.n_pieces, next_ = 0, n_taken_ = 0;
    std::vector<std::thread> threads_;
};

}  // namespace

std::size_t n_slots(std::uint32_t n_threads) noexcept { return n_threads > 1 ? kSlotsPerThread * n_threads : 1; }

void work_in_order(const OrderedWork& work, std::uint32_t n_threads) {
    const std::uint64_t n_useful = std::clamp<std::uint64_t>(work.n_pieces, 1, std::max(n_threads, 1u));
    WorkingThreads(work, static_cast<std::uint32_t>(n_useful)).take_all();
}

}  // namespace fovea
