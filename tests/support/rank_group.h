// Ranks of a model that are threads of one process.
#pragma once
#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "fovea/ranks.h"

namespace fovea::testing {

/// Ranks within one process: each copies the others' parts from their memory.
class Group {
public:
    explicit Group(std::uint32_t n) : meeting_(n), data_(n), ends_(n) {
        for (std::uint32_t r = 0; r < n; ++r) {
            places_.push_back(std::make_unique<Place>(Place{this, r}));
            ranks.push_back({.context = places_.back().get(),
                             .rank = r,
                             .n_ranks = n,
                             .gather = [](void* place, std::byte* data, std::span<const std::uint64_t> ends) {
                                 const Place& p = *static_cast<Place*>(place);
                                 return p.group->gather(p.rank, data, ends);
                             }});
        }
    }

    std::vector<Ranks> ranks;
    std::atomic<std::uint32_t> n_gathers = 0;
    std::atomic<bool> lost = false;

private:
    struct Place {
        Group* group;
        std::uint32_t rank;
    };

    bool gather(std::uint32_t rank, std::byte* data, std::span<const std::uint64_t> ends) {
        data_[rank] = data;
        ends_[rank].assign(ends.begin(), ends.end());
        ++n_gathers;
        meeting_.arrive_and_wait();
        bool same_parts = ends_[rank] == ends_[0];
        for (std::size_t r = 0; r < data_.size() && same_parts; ++r) {
            const std::uint64_t begin = r ? ends[r - 1] : 0;
            if (r != rank) std::memcpy(data + begin, data_[r] + begin, ends[r] - begin);
        }
        meeting_.arrive_and_wait();
        return same_parts && !lost;
    }

    std::barrier<> meeting_;
    std::vector<std::byte*> data_;
    std::vector<std::vector<std::uint64_t>> ends_;
    std::vector<std::unique_ptr<Place>> places_;
};

/// Calls act(rank) for each rank, all at once.
void for_all_ranks(Group& group, const auto& act) {
    std::vector<std::thread> threads;
    for (const Ranks& ranks : group.ranks) threads.emplace_back([&] { act(ranks); });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace fovea::testing
