// What ranks compare before they compute together, and the shares that they then have.
#pragma once
#include <cstdint>

#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "fovea/ranks.h"

namespace fovea::host {

/// Compares this model, the version, the numerics, the stages and shares asked for and the bits of the first layer with the other
/// ranks'; of each model once. Gives the stages and shares of all, which stay: Limits::split.
///
///   isa, n_threads  this rank's
///
/// Throws host::Error on all ranks where one differs from the first, with its number and what differs.
[[nodiscard]] const RankSplit* compare_ranks(const Ranks& ranks, const Opened& opened, const RankShares& asked,
                                             const char* isa, std::uint32_t n_threads);

/// The ranks that this process is one of, or null: see use_ranks.
[[nodiscard]] const Ranks* used_ranks() noexcept;

/// Throws host::Error where `draft` cannot propose tokens for `served`: both have the same, the first of several ranks runs a draft
/// alone, and a next-token head wants vectors that ranks in stages do not hand over.
void check_draft(const Opened& served, const Opened& draft);

/// A session that has no part in the ranks, and the two halves of it: memory, and what is made in it. Throws host::Error.
[[nodiscard]] Runtime<Session> start_alone(const Opened& opened, const Limits& limits, const SessionOptions& options);
[[nodiscard]] Plan plan_alone(const Opened& opened, const Limits& limits);
void make_alone(const Opened& opened, const SessionOptions& options, Runtime<Session>& session);

}  // namespace fovea::host
