// A team of threads that runs one function together, once per forward pass, with a barrier inside.
#pragma once
#include <atomic>
#include <cstdint>

namespace fovea {

/// Shared by a team's members; lives in the session's arena. Start with start_team; there is nothing to end.
struct Team;

/// Bytes and alignment of a Team in the arena; the same on every machine.
inline constexpr std::uint64_t kTeamBytes = 256;

/// Runs a team: calls work(argument, member) for the members 0 to n_members − 1, all at the same time, since they wait
/// for each other, and returns when all are done. See Executor in fovea/workspace.h.
using TeamRunner = void (*)(void* context, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
                            void* argument);

/// Makes a team of n_threads at `place` (kTeamBytes, 64-byte aligned). It runs by `run`, or, if that is null, on the
/// threads that make_threads has made. OpenMP starts its threads here.
[[nodiscard]] Team* start_team(void* place, std::uint32_t n_threads, TeamRunner run = nullptr,
                               void* context = nullptr) noexcept;

/// Calls work(context, member) on every member, 0 to team_size − 1, with each member's floating-point environment set
/// (see float_env.h), and returns when all are done. Without a `run` of its own the team has the calling thread as
/// member 0, and the threads made for that thread: it makes none.
void run_team(Team& team, void (*work)(void* context, std::uint32_t member), void* context) noexcept;

/// Waits until every member of the running team is here: spins for a bounded time, then sleeps. Every member calls it
/// equally often. All see afterwards what the members wrote before.
void barrier(Team& team) noexcept;

/// The next piece of the running team's work: numbers from 0 on after every barrier, each given to one member, as they
/// come, so that a slow member holds up nobody. The team has several members. Between two waits only one kind of pieces
/// may be taken.
[[nodiscard]] std::uint32_t claim_work(Team& team) noexcept;

/// The number of members: n_threads, or fewer if the calling thread has fewer, or OpenMP gives fewer.
/// Divide work by this inside `work`, never by a number from elsewhere.
[[nodiscard]] std::uint32_t team_size(const Team& team) noexcept;

// ---- the engine's own threads (threads.cpp) ------------------------------------------------------------------------

/// Whether this build can make threads.
[[nodiscard]] bool has_threads() noexcept;

/// Makes threads for the calling thread until it and they are n_threads, for all its teams of up to so many members.
/// They sleep while there is no work, and end with the calling thread. False, and as many as before, if the system
/// gives fewer. A forked child has none, and may make its own.
[[nodiscard]] bool make_threads(std::uint32_t n_threads) noexcept;

/// Ends the threads made for the calling thread; within a run it does nothing. Its teams then have one member.
void drop_threads() noexcept;

/// The number of threads that can be had now, the calling one included: 1 inside a run.
[[nodiscard]] std::uint32_t threads_here() noexcept;

/// A TeamRunner on the calling thread and its threads, for up to threads_here members.
void run_on_threads(void* context, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
                    void* argument) noexcept;

// ---- OpenMP's team (openmp.cpp) ------------------------------------------------------------------------------------

/// How many members a run by openmp_executor (fovea/executors.h) has, within its `work`; n_members at most.
[[nodiscard]] std::uint32_t openmp_members() noexcept;

// ---- the machine's cores (cores.cpp) -------------------------------------------------------------------------------

/// The number of cores that this thread may use and that are worth using together: the physical cores of its affinity
/// mask, only of the fastest kind, and no more than a container's quota. The default for Limits::n_threads. At least 1.
/// Reads /sys below `root` if there is one; allocates nothing.
[[nodiscard]] std::uint32_t fast_cores(const char* root = "") noexcept;

/// The CPUs' worth of time that the quotas of this process's control groups and of all above them allow, of both versions,
/// rounded up; 0 if there is none. Reads /proc and /sys below `root`. Only on Linux.
[[nodiscard]] std::uint64_t cpu_quota(const char* root = "") noexcept;

/// The number of CPUs in this thread's affinity mask; if that cannot be known, those of the machine.
[[nodiscard]] std::uint32_t usable_cpus() noexcept;

#if defined(__linux__)

/// The CPUs of a team's members, of the first kMost.
struct TakenCpus {
    static constexpr std::uint32_t kMost = 256;
    std::atomic<std::uint32_t> bits[kMost / 32] = {};

    void clear() noexcept {
        for (auto& some : bits) some.store(0, std::memory_order_relaxed);
    }
};

/// Takes the calling thread's CPU. If another member has it the thread moves to one that it may use and that none has, if there is
/// one: members that share a CPU sleep in turns, so to Linux they are less than one thread's load, and it leaves them together
/// while others' work has the rest of the machine.
void take_cpu(TakenCpus& taken) noexcept;

#else

struct TakenCpus {
    void clear() noexcept {}
};
inline void take_cpu(TakenCpus&) noexcept {}

#endif

}  // namespace fovea
