// The other processes that mpirun started beside this one: together they run one model, see fovea/ranks.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "fovea/host/runtime.h"
#include "fovea/ranks.h"
#include "fovea/session.h"

namespace fovea {

/// Joins the ranks, where a launcher of MPI started several processes; from here on sessions and workspaces are those of a
/// rank, and all ranks but the first are silent. Throws host::Error in a build without MPI.
void join_ranks();
/// Leaves them. To be called when all is done.
void leave_ranks() noexcept;

/// From here on the first rank leads, and the others follow its passes (host/model/leading.h): what one of several ranks starts
/// next is to be followed by the others. Does nothing in a process alone.
void lead_ranks();
/// Makes the first rank's passes to their end. On another rank.
void follow_first_rank(const Workspace& workspace, const CachePool& pool, const CachePool& memories);
/// The same with a session, and true. Does nothing on the first rank and in a process alone.
[[nodiscard]] bool follows_first_rank(const Session& session);

/// Whether this is one of several ranks, and not the first.
[[nodiscard]] bool is_other_rank() noexcept;
/// Null for a process alone.
[[nodiscard]] const Ranks* joined_ranks() noexcept;
/// Messages and bytes that this rank has sent.
struct RankTraffic {
    std::uint64_t n_messages = 0, n_bytes = 0;
};
[[nodiscard]] RankTraffic rank_traffic() noexcept;
/// Threads of a rank where nobody says: this machine's ranks share its CPUs.
[[nodiscard]] std::uint32_t threads_of_rank(std::uint32_t by_default) noexcept;

/// --shares and --stages of so many ranks; an empty text: evenly. Throws UsageError.
[[nodiscard]] host::RankShares read_shares(const std::string& text, std::uint32_t n_stages, std::uint32_t n_ranks);
/// Has the ranks share the work by them. Throws UsageError.
void share_by_ranks(const std::string& shares, std::uint32_t n_stages);

/// Throws UsageError where several ranks do not do what `what` names.
void refuse_by_ranks(const std::string& what);
/// What the first rank has, on all.
[[nodiscard]] std::optional<std::string> from_first_rank(std::optional<std::string> text);
/// Calls `act` on the first rank, and then on the others.
template<class Act>
[[nodiscard]] auto first_rank_first(Act act) {
    const Ranks* ranks = joined_ranks();
    if (ranks && ranks->rank) (void)from_first_rank(std::nullopt);
    auto made = act();
    if (ranks && !ranks->rank) (void)from_first_rank(std::nullopt);
    return made;
}

/// Where the first rank writes the file, the others write nothing.
[[nodiscard]] std::string output_of_rank(std::string path);

/// Ends all ranks after an error of this one, which is said once: by the first if it has it too, else by a rank that adds
/// its number. Does nothing in a process alone.
void end_ranks(const std::string& line, int status) noexcept;

}  // namespace fovea
