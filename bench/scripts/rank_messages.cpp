// What gathers of MPI take between these ranks, by the functions that the engine calls: bench/scripts/ranks_model.py fits its
// model of the network to it.
//     mpicxx -std=c++20 -O2 -I. -Iinclude bench/scripts/rank_messages.cpp ranks/*.cpp -o rank_messages
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "ranks/mpi_ranks.h"

using Clock = std::chrono::steady_clock;

namespace {

double microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

/// Microseconds that a gather takes, where each rank has a part of n_bytes: the median of many. Ranks begin each at a different
/// time, as they do after their share of a phase: a rank waits `pause` before it.
double median_gather(const fovea::Ranks& ranks, std::size_t n_bytes, int n_times, std::chrono::microseconds pause) {
    std::vector<std::byte> data(n_bytes * ranks.n_ranks);
    std::vector<std::uint64_t> ends;
    for (std::uint32_t r = 1; r <= ranks.n_ranks; ++r) ends.push_back(r * n_bytes);
    std::vector<double> took;
    for (int i = 0; i < n_times; ++i) {
        const Clock::time_point until = Clock::now() + pause;
        while (Clock::now() < until) {
        }
        const Clock::time_point started = Clock::now();
        if (!ranks.gather(ranks.context, {}, data.data(), ends)) std::exit(1);
        took.push_back(microseconds(Clock::now() - started));
    }
    std::nth_element(took.begin(), took.begin() + n_times / 2, took.end());
    return took[static_cast<std::size_t>(n_times) / 2];
}

}  // namespace

int main() {
    fovea::ranks::MpiRanks mpi([](std::uint32_t) { fovea::ranks::MpiRanks::end_all(1); });
    const fovea::Ranks& ranks = mpi.ranks();
    for (std::size_t n_bytes = 64; n_bytes <= 4u << 20; n_bytes *= 4) {
        (void)median_gather(ranks, n_bytes, 10, {});
        const double took = median_gather(ranks, n_bytes, n_bytes < 100000 ? 400 : 30, std::chrono::microseconds(200));
        if (ranks.rank == 0) std::printf("%zu %.2f\n", n_bytes, took);
    }
}
