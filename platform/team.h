// A team of threads that runs one function together, once per forward pass, with a barrier inside.
#pragma once
#include <cstdint>

namespace fovea {

/// Shared by a team's members; lives in the session's arena. Start with start_team.
struct Team;

/// Bytes and alignment of a Team in the arena; the same on every machine.
inline constexpr std::uint64_t kTeamBytes = 256;

/// Makes a team of n_threads at `place` (kTeamBytes, 64-byte aligned) and creates its threads now, so that run_team
/// never has to. Without OpenMP only n_threads = 1 can be had. Null where the threads could not be made.
[[nodiscard]] Team* start_team(void* place, std::uint32_t n_threads) noexcept;

/// Calls work(context, member) on every member, 0 (the calling thread) to n_threads − 1, in one parallel region, with
/// each member's floating-point environment set (see float_env.h), and returns when all are done.
void run_team(Team& team, void (*work)(void* context, std::uint32_t member), void* context) noexcept;

/// Waits until every member of the running team is here: spins for a bounded time, then sleeps.
void wait_team(Team& team) noexcept;

[[nodiscard]] std::uint32_t team_size(const Team& team) noexcept;

/// The number of fast cores in this thread's affinity mask: the default for Limits::n_threads. At least 1.
[[nodiscard]] std::uint32_t fast_cores() noexcept;

}  // namespace fovea
