// A team of threads that runs one function together, once per forward pass, with a barrier inside.
#pragma once
#include <cstdint>

namespace fovea {

/// Shared by a team's members; lives in the session's arena. Start with start_team; to end it, forget it.
struct Team;

/// Bytes and alignment of a Team in the arena; the same on every machine.
inline constexpr std::uint64_t kTeamBytes = 256;

/// Creates the threads that a team of n_threads wants, once for this thread and all teams of up to so many members, so
/// that run_team never has to. Without OpenMP only n_threads = 1 can be had. False where the threads could not be had.
[[nodiscard]] bool make_threads(std::uint32_t n_threads) noexcept;

/// Makes a team of n_threads at `place` (kTeamBytes, 64-byte aligned) whose threads make_threads has created.
[[nodiscard]] Team* start_team(void* place, std::uint32_t n_threads) noexcept;

/// Calls work(context, member) on every member, 0 (the calling thread) to team_size − 1, in one parallel region, with
/// each member's floating-point environment set (see float_env.h), and returns when all are done. Call it from the
/// thread that started the team: OpenMP keeps threads per caller.
void run_team(Team& team, void (*work)(void* context, std::uint32_t member), void* context) noexcept;

/// Waits until every member of the running team is here: spins for a bounded time, then sleeps. Called by every member
/// equally often. What members wrote before is seen by all after.
void wait_team(Team& team) noexcept;

/// The next piece of the running team's work, which has several members: numbers from 0 on after every wait_team, each
/// given to one member, as they come, so that a slow one holds up nobody. Between two waits for one kind of pieces only.
[[nodiscard]] std::uint32_t take_piece(Team& team) noexcept;

/// The number of members: n_threads, but for a run within the host's own parallel region, where OpenMP gives fewer.
/// Divide work by this inside `work`, never by a number from elsewhere.
[[nodiscard]] std::uint32_t team_size(const Team& team) noexcept;

/// The number of cores that this thread may use and that are worth using together: of its affinity mask, one for each
/// physical core, of the fastest kind only, and no more than a container's quota. The default for Limits::n_threads.
/// At least 1. Reads /sys below `root` where there is one; allocates nothing.
[[nodiscard]] std::uint32_t fast_cores(const char* root = "") noexcept;

}  // namespace fovea
