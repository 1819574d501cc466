// The plan of a session or a workspace, with what is needed beside it.
#pragma once
#include "engine/pass/arena_map.h"

namespace fovea {

/// A session's cache, as a pool of one page and one sequence.
[[nodiscard]] PoolLimits session_pool(const Limits& limits, const ArenaMap& map) noexcept;

/// Which of the two is planned.
enum class Planned : std::uint8_t { session, workspace };

/// make_plan and make_workspace_plan, with what is needed beside the plan.
[[nodiscard]] Status lay_out(Planned what, const Config& config, const Limits& limits, ArenaMap& map,
                             Plan& plan) noexcept;

}  // namespace fovea
