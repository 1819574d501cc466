#include "ranks/mpi_ranks.h"

#include <mpi.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "ranks/life_signs.h"

namespace fovea::ranks {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

// A rank that waits looks for messages all the time at first, for ranks that are even come within microseconds. Then it sleeps
// between two looks, for a part of what it has waited: it is late by no more than that part, and a slow network costs next to
// no CPU. It does not yield instead: beside other programs that may give its CPU away for milliseconds.
constexpr microseconds kSpin{100}, kLongestSleep{500};
constexpr int kSleepPart = 10, kLongSleepPart = 100;
// Bytes of a part that go together. What has come is a sign of life, so that a slow network is not taken for a lost one.
constexpr std::uint64_t kRound = 1 << 20;

microseconds sleep_after(microseconds waited) {
    return std::max(std::min(waited / kSleepPart, kLongestSleep),
                    std::min(waited / kLongSleepPart, 20 * kLongestSleep));
}

/// Waits until all are done; false: one failed.
bool wait_for(std::mutex& mpi, MPI_Request* requests, int n) noexcept {
    const Clock::time_point started = Clock::now();
    for (int done = 0;;) {
        {
            const std::lock_guard held(mpi);
            if (MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) return false;
        }
        if (done) return true;
        const auto waited = std::chrono::duration_cast<microseconds>(Clock::now() - started);
        if (waited >= kSpin) std::this_thread::sleep_for(sleep_after(waited));
    }
}

}  // namespace

MpiRanks::MpiRanks(std::function<void(std::uint32_t)> on_silence) {
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
              .gather = [](void* self, RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) {
                  return static_cast<MpiRanks*>(self)->gather(among, data, ends);
              }};
    if (n < 2) return;
    name_machines();
    signs_ = std::make_unique<LifeSigns>(mpi_, std::move(on_silence));
}

MpiRanks::~MpiRanks() {
    signs_.reset();
    MPI_Finalize();
}

int MpiRanks::silence_seconds() noexcept { return static_cast<int>(LifeSigns::kLongest.count()); }

void MpiRanks::name_machines() {
    std::vector<char> names(std::size_t{ranks_.n_ranks} * MPI_MAX_PROCESSOR_NAME);
    char own[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(own, &length);
    MPI_Allgather(own, sizeof own, MPI_CHAR, names.data(), sizeof own, MPI_CHAR, MPI_COMM_WORLD);
    for (std::uint32_t r = 0; r < ranks_.n_ranks; ++r)
        machines_.emplace_back(names.data() + std::size_t{r} * MPI_MAX_PROCESSOR_NAME);
}

void MpiRanks::end_all(int status) noexcept {
    alarm(2);  // where the launcher is lost too, MPI_Abort may wait for it
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
}

bool MpiRanks::gather(RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) noexcept {
    std::uint64_t longest = 0, begin = 0;
    for (const std::uint64_t end : ends) longest = std::max(longest, end - std::exchange(begin, end));
    for (std::uint64_t first = 0; first < longest; first += kRound)
        if (!gather_round(among, data, ends, first)) {
            // MPI does not say who was lost; the signs do.
            std::this_thread::sleep_for(2 * LifeSigns::kLongest);
            return false;
        }
    return true;
}

/// Every rank of the group sends its part to each of the others. Messages of two ranks come in the order in which they were
/// sent, so one tag does for all, whatever groups they are of.
bool MpiRanks::gather_round(RankGroup among, std::byte* data, std::span<const std::uint64_t> ends,
                            std::uint64_t first) noexcept {
    MPI_Request requests[2 * kMaxRanks];
    int n = 0;
    const auto part = [&](std::uint32_t r) {
        const std::uint64_t begin = r ? ends[r - 1] : 0, from = std::min(begin + first, ends[r]);
        return std::span<std::byte>(data + from, static_cast<std::size_t>(std::min(ends[r] - from, kRound)));
    };
    const auto n_ranks = static_cast<std::uint32_t>(ends.size());
    const std::uint32_t own = (ranks_.rank - among.first) / among.stride;  // within the group
    const auto other = [&](std::uint32_t i) { return (own + i) % n_ranks; };
    const auto number = [&](std::uint32_t r) { return among.first + r * among.stride; };
    {
        const std::lock_guard held(mpi_);
        for (std::uint32_t i = n_ranks - 1; i > 0; --i) {
            const std::span<std::byte> bytes = part(other(i));
            if (!bytes.empty() &&
                MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(number(other(i))), 0,
                          MPI_COMM_WORLD, &requests[n++]) != MPI_SUCCESS)
                return false;
        }
        const std::span<std::byte> mine = part(own);
        for (std::uint32_t i = 1; i < n_ranks && !mine.empty(); ++i) {
            if (MPI_Isend(mine.data(), static_cast<int>(mine.size()), MPI_BYTE, static_cast<int>(number(other(i))), 0,
                          MPI_COMM_WORLD, &requests[n++]) != MPI_SUCCESS)
                return false;
            ++sent_.n_messages;
            sent_.n_bytes += mine.size();
        }
    }
    if (!wait_for(mpi_, requests, n)) return false;
    for (std::uint32_t i = 1; i < n_ranks; ++i)
        if (!part(other(i)).empty()) signs_->heard(number(other(i)));
    return true;
}

}  // namespace fovea::ranks
