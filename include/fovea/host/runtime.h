// What runs a model, with the memory it lives in: planned, taken, made in this order, and refused in one way.
#pragma once
#include <cstdint>
#include <vector>

#include "fovea/cache.h"
#include "fovea/generator.h"
#include "fovea/host/arena.h"
#include "fovea/host/opened.h"
#include "fovea/plan.h"
#include "fovea/ranks.h"
#include "fovea/session.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
namespace host {

template<class Made>
struct PlanOf {
    using Type = Plan;
};
template<>
struct PlanOf<CachePool> {
    using Type = PoolPlan;
};
template<>
struct PlanOf<Generator> {
    using Type = GeneratorPlan;
};

/// A session, a workspace, a pool of caches or a generator, with its plan and the arena that the plan is of.
///
///     const host::Opened opened = host::open_file("model.fovea");
///     host::Runtime<Session> running = host::start_session(opened, {.max_kv_len = 100});
///     forward(*running, tokens, logits);
///
/// Movable: the arena stays where it is. The opened model must outlive it. Members are public so that a caller may plan
/// first and make later.
template<class Made>
struct Runtime {
    typename PlanOf<Made>::Type plan;
    Arena arena;
    Made made;

    [[nodiscard]] Made& operator*() noexcept { return made; }
    [[nodiscard]] const Made& operator*() const noexcept { return made; }
    [[nodiscard]] Made* operator->() noexcept { return &made; }
    [[nodiscard]] const Made* operator->() const noexcept { return &made; }
};

/// An arena of n_bytes, for the model's use; a large one in large pages, where the system has them. Throws StatusError with
/// Code::arena_too_small where there is no such memory.
[[nodiscard]] Arena take_arena(const Opened& opened, std::uint64_t n_bytes, Pages pages = Pages::at_use);

/// What computes, in this process, the sessions and workspaces that are started with no executor from here on: translators',
/// transcribers' and all others'. By default the engine's own threads. To be called before other threads start any.
void use_executor(const Executor& executor) noexcept;

/// The ranks that this process is one of: what is started from here on has its share. Null: it is alone. The first start with
/// a model compares it, the version, the numerics and the bits of its first layer with the other ranks'. To be called before
/// anything is started.
void use_ranks(const Ranks* ranks) noexcept;
/// How ranks share the work, see RankSplit: by shares, or none, then evenly or by the time that each takes for the first layer.
struct RankShares {
    std::vector<std::uint8_t> each{};
    bool by_speed = false;
    std::uint8_t n_stages = 1;
};
void use_shares(RankShares shares) noexcept;

/// Sessions and workspaces are planned for the model's adapters, and use them. All throw host::Error.
[[nodiscard]] Runtime<Session> start_session(const Opened& opened, Limits limits, const SessionOptions& options = {});
[[nodiscard]] Runtime<Workspace> start_workspace(const Opened& opened, Limits limits,
                                                 const SessionOptions& options = {});
/// The two halves of start_workspace, for those who compute in a thread of their own: memory, and what is made in it.
[[nodiscard]] Runtime<Workspace> plan_workspace(const Opened& opened, Limits limits, Pages pages = Pages::at_use);
void make_workspace(const Opened& opened, const SessionOptions& options, Runtime<Workspace>& workspace);

[[nodiscard]] Runtime<CachePool> start_pool(const Opened& opened, const PoolLimits& limits,
                                            Pages pages = Pages::at_use);
/// A cache of the pool. Throws host::Error where it has none left.
[[nodiscard]] Cache start_cache(const Opened& opened, Runtime<CachePool>& pool);

/// A generator of texts in `cache`, which must outlive it. Without a tokenizer its pieces have ids alone.
[[nodiscard]] Runtime<Generator> start_generator(const Opened& opened, const Cache& cache,
                                                 const GeneratorLimits& limits);

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
