// What lies at the start of a session's arena: a workspace, and where it has one, a cache.
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

}  // namespace fovea
