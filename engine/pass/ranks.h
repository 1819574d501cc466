// A pass of several ranks, before its first phase and behind its last.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// Whether the other ranks follow this one's calls, see Ranks::lead.
[[nodiscard]] inline bool leads(const WorkspaceState& w) noexcept { return w.by_ranks() && w.ranks->lead; }
/// Hands the steps to the ranks that follow. Errors: unsupported (steps that they do not take), io_error.
[[nodiscard]] Status lead_ranks(const WorkspaceState& workspace, const StepList& steps) noexcept;
[[nodiscard]] Status lead_ranks(const WorkspaceState& workspace, const EncodeInput& input, std::size_t n_out) noexcept;
[[nodiscard]] Status lead_ranks(const WorkspaceState& workspace, const EncodeInput& input,
                                std::span<const Cache> memories) noexcept;
/// Holds this rank's pass against the others', and their flags. Errors: cancelled, session_mismatch (not the same pass on all
/// ranks), io_error (ranks that cannot be reached).
[[nodiscard]] Status start_ranks(WorkspaceState& workspace, const PassInput& input) noexcept;
/// What became of a pass that ended for another reason than the flag.
[[nodiscard]] Status end_of_ranks(const WorkspaceState& workspace) noexcept;

}  // namespace fovea
