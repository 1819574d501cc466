// What lies at the start of a session's arena: a workspace, and where it has one, a cache. How the first is made.
#pragma once
#include "engine/pass/workspace.h"
#include "fovea/session.h"

namespace fovea {

struct SessionState {
    WorkspaceState workspace;
    Cache cache;  // not valid where the model gives no logits
};
inline constexpr std::uint64_t kSessionStateBytes = kWorkspaceStateBytes + 64;
static_assert(sizeof(SessionState) <= kSessionStateBytes);

struct SessionAccess {
    [[nodiscard]] static SessionState* state(const Session& session) noexcept { return session.state_; }
    static void set(Session& session, SessionState* state) noexcept { session.state_ = state; }
};

/// Makes a workspace at `state`, which lies in `arena`; `map` and `limits` are lay_out's. Errors, the arena untouched:
/// isa_unavailable, threads_unavailable.
[[nodiscard]] Status start_workspace(WorkspaceState* state, const Model& model, const Limits& limits,
                                     const ArenaMap& map, std::byte* arena, const SessionOptions& options) noexcept;

}  // namespace fovea
