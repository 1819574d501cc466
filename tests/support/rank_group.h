// Ranks of a model that are threads of one process.
#pragma once
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "fovea/ranks.h"

namespace fovea::testing {

/// Ranks within one process: each copies the others' parts from their memory.
class Group {
public:
    explicit Group(std::uint32_t n) {
        for (std::uint32_t r = 0; r < n; ++r) {
            places_.push_back(std::make_unique<Place>(Place{this, r}));
            ranks.push_back(
                {.context = places_.back().get(),
                 .rank = r,
                 .n_ranks = n,
                 .gather = [](void* place, RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) {
                     const Place& p = *static_cast<Place*>(place);
                     return p.group->gather(p.rank, among, data, ends);
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
    /// Where the n ranks of a group come together.
    struct Meeting {
        explicit Meeting(std::size_t n) : all(static_cast<std::ptrdiff_t>(n)), data(n), ends(n) {}
        std::barrier<> all;
        std::vector<std::byte*> data;
        std::vector<std::vector<std::uint64_t>> ends;
    };

    Meeting& meeting(RankGroup among, std::size_t n) {
        const std::lock_guard held(mutex_);
        return meetings_.try_emplace({among.first, among.stride, n}, n).first->second;
    }

    bool gather(std::uint32_t rank, RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) {
        Meeting& m = meeting(among, ends.size());
        const std::size_t own = (rank - among.first) / among.stride;
        m.data[own] = data;
        m.ends[own].assign(ends.begin(), ends.end());
        ++n_gathers;
        m.all.arrive_and_wait();
        bool same_parts = m.ends[own] == m.ends[0];
        for (std::size_t r = 0; r < ends.size() && same_parts; ++r) {
            const std::uint64_t begin = r ? ends[r - 1] : 0;
            if (r != own && ends[r] != begin) std::memcpy(data + begin, m.data[r] + begin, ends[r] - begin);
        }
        m.all.arrive_and_wait();
        return same_parts && !lost;
    }

    std::mutex mutex_;
    std::map<std::array<std::size_t, 3>, Meeting> meetings_;
    std::vector<std::unique_ptr<Place>> places_;
};

/// Calls act(rank) for each rank, all at once.
void for_all_ranks(Group& group, const auto& act) {
    std::vector<std::thread> threads;
    for (const Ranks& ranks : group.ranks) threads.emplace_back([&] { act(ranks); });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace fovea::testing
