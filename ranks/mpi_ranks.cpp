#include "ranks/mpi_ranks.h"

#include <mpi.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace fovea::ranks {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

// A rank that waits looks for messages all the time at first, for ranks that are even come within microseconds. Then it sleeps
// between two looks, for a part of what it has waited: it is late by no more than that part, and a slow network costs next to
// no CPU. It does not yield instead: beside other programs that may give its CPU away for milliseconds.
constexpr microseconds kSpin{100}, kLongestSleep{500};
constexpr int kSleepPart = 10;

/// Waits until all are done; false: one failed.
bool wait_for(MPI_Request* requests, int n) noexcept {
    const Clock::time_point started = Clock::now();
    for (int done = 0;;) {
        if (MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) return false;
        if (done) return true;
        const auto waited = std::chrono::duration_cast<microseconds>(Clock::now() - started);
        if (waited >= kSpin) std::this_thread::sleep_for(std::min(waited / kSleepPart, kLongestSleep));
    }
}

}  // namespace

MpiRanks::MpiRanks() {
    int has_threads = 0, rank = 0, n = 1, n_here = 1;
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);  // Open MPI's, where ranks are more than CPUs: see kSpin
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &has_threads) != MPI_SUCCESS)
        throw std::runtime_error("MPI: cannot be started");
    if (has_threads < MPI_THREAD_SERIALIZED)
        throw std::runtime_error(
            "MPI: expected one that any thread may call in turn, got one for the main thread alone");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (n > static_cast<int>(kMaxRanks))
        throw std::runtime_error("ranks: expected at most " + std::to_string(kMaxRanks) + ", got " + std::to_string(n));
    MPI_Comm here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &n_here);
    MPI_Comm_free(&here);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    n_here_ = static_cast<std::uint32_t>(n_here);
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1000ul);  // nanoseconds: sleeps end when they are to
#endif
    ranks_ = {.context = this,
              .rank = static_cast<std::uint32_t>(rank),
              .n_ranks = static_cast<std::uint32_t>(n),
              .gather = [](void* self, std::byte* data, std::span<const std::uint64_t> ends) {
                  return static_cast<MpiRanks*>(self)->gather(data, ends);
              }};
}

MpiRanks::~MpiRanks() { MPI_Finalize(); }

void MpiRanks::end_all(int status) noexcept {
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
}

/// Every rank sends its part to each of the others. Messages of two ranks come in the order in which they were sent, so one
/// tag does for all.
bool MpiRanks::gather(std::byte* data, std::span<const std::uint64_t> ends) noexcept {
    MPI_Request requests[2 * kMaxRanks];
    int n = 0;
    const auto part = [&](std::uint32_t r) {
        const std::uint64_t begin = r ? ends[r - 1] : 0;
        return std::span<std::byte>(data + begin, static_cast<std::size_t>(ends[r] - begin));
    };
    const std::uint32_t own = ranks_.rank, n_ranks = ranks_.n_ranks;
    for (std::uint32_t i = 1; i < n_ranks; ++i) {
        const std::uint32_t from = (own + n_ranks - i) % n_ranks;
        const std::span<std::byte> bytes = part(from);
        if (bytes.size() > INT_MAX) return false;
        if (!bytes.empty() && MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(from),
                                        0, MPI_COMM_WORLD, &requests[n++]) != MPI_SUCCESS)
            return false;
    }
    const std::span<std::byte> mine = part(own);
    if (mine.size() > INT_MAX) return false;
    for (std::uint32_t i = 1; i < n_ranks && !mine.empty(); ++i) {
        const int to = static_cast<int>((own + i) % n_ranks);
        if (MPI_Isend(mine.data(), static_cast<int>(mine.size()), MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[n++]) !=
            MPI_SUCCESS)
            return false;
        ++sent_.n_messages;
        sent_.n_bytes += mine.size();
    }
    return wait_for(requests, n);
}

}  // namespace fovea::ranks
