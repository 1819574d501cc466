// A session: a workspace and a cache of one page in one arena.
#include "engine/run/session.h"

#include <new>

#include "engine/model/arena.h"
#include "engine/model/states.h"
#include "engine/pass/ranks.h"
#include "engine/run/plan.h"

namespace fovea {
namespace {

[[nodiscard]] Status no_session() noexcept { return {Code::bad_argument, "session: not made", 0, 0}; }
[[nodiscard]] Status no_cache() noexcept { return {Code::unsupported, "a cache of this model", 0, 0}; }

/// Errors of functions that want a session with a cache.
[[nodiscard]] Status check_cache(const Session& session) noexcept {
    if (!session.valid()) return no_session();
    return session.cache().valid() ? Status{} : no_cache();
}

}  // namespace

Status make_session(const Model& model, const Limits& limits, std::span<std::byte> arena, Session& session,
                    const SessionOptions& options) noexcept {
    ArenaMap map{};
    Plan plan;
    if (Status status = lay_out(Planned::session, model.config(), limits, map, plan); !status.ok()) return status;
    if (Status status = check_arena(arena, plan.arena_bytes); !status.ok()) return status;
    auto* state = reinterpret_cast<SessionState*>(arena.data());
    if (Status status = start_workspace(&state->workspace, model, plan.limits, map, arena.data(), options);
        !status.ok())
        return status;
    new (&state->cache) Cache;
    if (kind_of(state->workspace.model.config()) == Kind::decode) {
        const PoolLimits one = session_pool(plan.limits, map);
        const Config& config = state->workspace.model.config();
        const PoolMap tables = lay_out_pool(config, one, state_bytes(config.decoder));
        CachePool pool;
        CacheAccess::set(pool, start_pool(&state->workspace.model, one, tables, arena.data() + map.pool,
                                          arena.data() + map.keys, arena.data() + plan.parts[plan.n_parts - 1].offset));
        if (Status status = make_cache(pool, state->cache); !status.ok()) return status;
    }
    SessionAccess::set(session, state);
    return {};
}

Status forward(Session& session, std::span<const Token> tokens, std::span<float> logits) noexcept {
    if (!session.valid()) return no_session();
    SessionState& s = *SessionAccess::state(session);
    if (!s.cache.valid()) return {Code::unsupported, "logits of this model", 0, 0};
    const Step step{s.cache, tokens, logits};
    return run_steps(s.workspace, {&step, 1});
}

Status rewind(Session& session, std::uint32_t kv_len, std::uint32_t* reached) noexcept {
    if (!session.valid()) return no_session();
    Cache cache = session.cache();
    if (!has(Part::vectors) || cache.valid()) return rewind(cache, kv_len, reached);
    if (kv_len) return {Code::bad_argument, "positions at most", 0, kv_len};
    if (reached) *reached = 0;
    return {};
}

std::uint64_t session_bytes(const Session& session) noexcept { return cache_bytes(session.cache()); }

Status save_session(const Session& session, std::span<std::byte> out, std::size_t& written) noexcept {
    if (Status status = check_cache(session); !status.ok()) return status;
    return save_cache(session.cache(), out, written);
}

Status restore_session(Session& session, std::span<const std::byte> saved) noexcept {
    if (Status status = check_cache(session); !status.ok()) return status;
    const WorkspaceState& w = *WorkspaceAccess::state(session.workspace());
    if (leads(w)) return {Code::unsupported, "a session restored beside ranks that follow", 1, w.limits.n_ranks};
    Cache cache = session.cache();
    return restore_cache(cache, saved);
}

Status copy_session(const Session& from, Session& to) noexcept {
    if (Status status = check_cache(from); !status.ok()) return status;
    if (Status status = check_cache(to); !status.ok()) return status;
    Cache cache = to.cache();
    return copy_cache(from.cache(), cache);
}

Status capture_attention(Session& session, const AttentionWeights& weights) noexcept {
    Workspace workspace = session.workspace();
    return capture_attention(workspace, weights);
}

void set_trace(Session& session, const Trace& trace) noexcept {
    Workspace workspace = session.workspace();
    set_trace(workspace, trace);
}

void set_cancel(Session& session, const std::atomic<bool>* flag) noexcept {
    Workspace workspace = session.workspace();
    set_cancel(workspace, flag);
}

std::uint32_t Session::kv_len() const noexcept { return cache().kv_len(); }
std::uint32_t Session::max_kv_len() const noexcept { return state_ ? state_->workspace.limits.max_kv_len : 0; }
const char* Session::isa() const noexcept { return state_ ? state_->workspace.kernels->isa : ""; }
const Model& Session::model() const noexcept { return state_->workspace.model; }
const Limits& Session::limits() const noexcept { return state_->workspace.limits; }
Workspace Session::workspace() const noexcept {
    Workspace workspace;
    if (state_) WorkspaceAccess::set(workspace, &state_->workspace);
    return workspace;
}
Cache Session::cache() const noexcept { return state_ ? state_->cache : Cache{}; }

}  // namespace fovea
