#include "tools/options/ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/base/unfinished.h"
#include "host/model/leading.h"
#include "tools/options/options.h"
#include "tools/terminal/usage_error.h"

#if FOVEA_MPI
#include "ranks/mpi_ranks.h"
#endif

namespace fovea {
namespace {

std::optional<host::Leading> leading;

/// A number that the launcher hands its processes by a variable of one of these names.
int launched(std::initializer_list<const char*> names, int otherwise) {
    for (const char* name : names)
        if (const char* n = std::getenv(name)) return std::atoi(n);
    return otherwise;
}

/// Processes that the launcher says it started: Open MPI, MPICH or, where it starts MPI's processes, Slurm.
int n_launched() {
    const int n = launched({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 0);
    return n ? n : std::getenv("PMIX_RANK") ? launched({"SLURM_NTASKS"}, 1) : 1;
}

/// The first rank's bytes, on all.
void broadcast(const Ranks& ranks, std::byte* data, std::uint64_t n) {
    const std::vector<std::uint64_t> ends(ranks.n_ranks, n);
    if (!ranks.gather(ranks.context, {}, data, ends)) throw host::Error("ranks: the others cannot be reached");
}

#if FOVEA_MPI
std::unique_ptr<ranks::MpiRanks> mpi;
int error_output = STDERR_FILENO;  // where a rank that is silent says its last line

void be_silent() {
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere < 0) return;
    error_output = dup(STDERR_FILENO);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, fd);
    close(nowhere);
}

/// Has a process that waits for others to start end in a line. Who they are MPI does not know by then.
void limit_start() {
    constexpr unsigned kSeconds = 60;
    std::signal(SIGALRM, [](int) {
        constexpr std::string_view kLine = "fovea: ranks: expected all to start within a minute, got fewer\n";
        (void)!write(error_output, kLine.data(), kLine.size());
        _exit(1);
    });
    // The first that says it ends the others.
    alarm(kSeconds + static_cast<unsigned>(launched({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, 0)));
}

/// Ends all ranks because one gives no sign. By a thread beside the one that computes.
void end_by_silence(std::uint32_t rank) {
    dprintf(error_output, "fovea: rank %u on %s: expected a sign of life each second, got none for %d\n", rank,
            mpi->machine(rank).c_str(), ranks::MpiRanks::silence_seconds());
    remove_unfinished_files();
    ranks::MpiRanks::end_all(1);
}
#endif

}  // namespace

void join_ranks() {
    if (n_launched() < 2) return;
#if FOVEA_MPI
    limit_start();
    try {
        mpi = std::make_unique<ranks::MpiRanks>(end_by_silence);
    } catch (const std::runtime_error& error) {
        throw host::Error(error.what());
    }
    alarm(0);
    std::signal(SIGALRM, SIG_DFL);
    if (mpi->ranks().n_ranks < 2) return mpi.reset();
    host::use_ranks(&mpi->ranks());
    if (mpi->ranks().rank) be_silent();
#else
    throw host::Error("ranks: expected a build with MPI (-D FOVEA_MPI=ON), got one without");
#endif
}

void leave_ranks() noexcept {
    leading.reset();
    host::use_ranks(nullptr);
#if FOVEA_MPI
    mpi.reset();
#endif
}

void lead_ranks() {
    const Ranks* ranks = joined_ranks();
    if (!ranks || ranks->rank) return;
    leading.emplace(*ranks);
    host::use_ranks(&leading->ranks());
}

void follow_first_rank(const Workspace& workspace, const CachePool& pool, const CachePool& memories) {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // the first rank ends in its own time
    host::follow(*joined_ranks(), workspace, pool, memories);
}

bool follows_first_rank(const Session& session) {
    if (!is_other_rank()) return false;
    follow_first_rank(session.workspace(), pool_of(session.cache()), {});
    return true;
}

bool is_other_rank() noexcept { return joined_ranks() && joined_ranks()->rank; }

const Ranks* joined_ranks() noexcept {
#if FOVEA_MPI
    if (mpi) return &mpi->ranks();
#endif
    return nullptr;
}

RankTraffic rank_traffic() noexcept {
#if FOVEA_MPI
    if (mpi) return {mpi->sent().n_messages, mpi->sent().n_bytes};
#endif
    return {};
}

std::uint32_t threads_of_rank(std::uint32_t by_default) noexcept {
#if FOVEA_MPI
    // Launchers may bind each rank to CPUs of its own: then they are few.
    if (mpi && by_default >= sysconf(_SC_NPROCESSORS_ONLN)) return std::max(1u, by_default / mpi->n_here());
#endif
    return by_default;
}

host::RankShares read_shares(const std::string& text, std::uint32_t n_stages, std::uint32_t n_ranks) {
    if (n_ranks % n_stages)
        throw UsageError("--stages: expected a divisor of " + std::to_string(n_ranks) + " ranks, got " +
                         std::to_string(n_stages));
    host::RankShares shares{.by_speed = text == "speed", .n_stages = static_cast<std::uint8_t>(n_stages)};
    if (text.empty() || shares.by_speed) return shares;
    for (const std::uint32_t share : read_list("--shares", text, 255)) {
        if (!share) throw UsageError("--shares: expected numbers from 1 to 255, got 0");
        shares.each.push_back(static_cast<std::uint8_t>(share));
    }
    if (shares.each.size() != n_ranks)
        throw UsageError("--shares: expected " + std::to_string(n_ranks) + " numbers, one for each rank, got " +
                         std::to_string(shares.each.size()));
    return shares;
}

void share_by_ranks(const std::string& shares, std::uint32_t n_stages) {
    if (shares.empty() && n_stages == 1) return;
    const Ranks* ranks = joined_ranks();
    if (!ranks)
        throw UsageError(std::string(shares.empty() ? "--stages" : "--shares") +
                         ": expected several ranks, got one process");
    host::use_shares(read_shares(shares, n_stages, ranks->n_ranks));
}

void refuse_by_ranks(const std::string& what) {
    if (const Ranks* ranks = joined_ranks())
        throw UsageError(what + ": expected one process, got " + std::to_string(ranks->n_ranks) +
                         " ranks, which do not do that");
}

std::optional<std::string> from_first_rank(std::optional<std::string> text) {
    const Ranks* ranks = joined_ranks();
    if (!ranks) return text;
    std::uint64_t head[2] = {text.has_value(), text ? text->size() : 0};
    broadcast(*ranks, reinterpret_cast<std::byte*>(head), sizeof head);
    if (!head[0]) return std::nullopt;
    std::string all = std::move(text).value_or("");
    all.resize(static_cast<std::size_t>(head[1]));
    if (head[1]) broadcast(*ranks, reinterpret_cast<std::byte*>(all.data()), head[1]);
    return all;
}

std::string output_of_rank(std::string path) {
    const Ranks* ranks = joined_ranks();
    return !ranks || !ranks->rank || is_standard_output(path) ? path : "/dev/null";
}

void end_ranks([[maybe_unused]] const std::string& line, [[maybe_unused]] int status) noexcept {
#if FOVEA_MPI
    if (!mpi) return;
    const Ranks& r = mpi->ranks();
    if (r.rank) {
        // What the others have too they say sooner, and end this rank.
        std::this_thread::sleep_for(std::chrono::milliseconds(1000 + 100 * r.rank));
        dprintf(error_output, "fovea: rank %u: %s\n", r.rank, line.c_str());
    }
    std::fflush(stderr);
    ranks::MpiRanks::end_all(status);
#endif
}

}  // namespace fovea
