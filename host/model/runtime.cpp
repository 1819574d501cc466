#include "fovea/host/runtime.h"

#include <cstring>
#include <string>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "host/base/error.h"
#include "host/base/status_error.h"
#include "host/base/words.h"
#include "host/model/compared_ranks.h"

namespace fovea::host {
namespace {

Executor chosen_executor;
const Ranks* chosen_ranks = nullptr;
RankShares chosen_shares;

[[nodiscard]] SessionOptions with_executor(SessionOptions options) noexcept {
    if (!options.executor.run) options.executor = chosen_executor;
    return options;
}

[[nodiscard]] SessionOptions with_ranks(SessionOptions options) noexcept {
    if (!options.ranks) options.ranks = chosen_ranks;
    return options;
}

/// How the ranks share a model: as its file is cut up, where it is.
[[nodiscard]] RankShares shares_of(const Opened& opened) {
    const Shard& cut = opened.shard;
    if (cut.n_ranks < 2) return chosen_shares;
    const RankShares& asked = chosen_shares;
    const bool same = !asked.by_speed && asked.each == cut.shares && asked.n_stages == cut.n_stages;
    if (!same && (asked.by_speed || !asked.each.empty() || asked.n_stages > 1))
        throw Error(opened.name + ": shares and stages: expected those that the model was cut up by, got others");
    return {.each = cut.shares, .n_stages = cut.n_stages};
}

/// Limits of this process's rank, once the ranks have the same model.
template<class L>
[[nodiscard]] L of_rank(const Opened& opened, L limits, const char* isa = nullptr) {
    if (!chosen_ranks) return limits;
    std::uint32_t n_threads = 1;
    if constexpr (requires { limits.n_threads; }) n_threads = limits.n_threads;
    limits.rank = static_cast<std::uint8_t>(chosen_ranks->rank);
    limits.n_ranks = static_cast<std::uint8_t>(chosen_ranks->n_ranks);
    limits.split = compare_ranks(*chosen_ranks, opened, shares_of(opened), isa, n_threads);
    return limits;
}

}  // namespace

void use_executor(const Executor& executor) noexcept { chosen_executor = executor; }
void use_ranks(const Ranks* ranks) noexcept { chosen_ranks = ranks; }
void use_shares(RankShares shares) noexcept { chosen_shares = std::move(shares); }
const Ranks* used_ranks() noexcept { return chosen_ranks; }

void check_draft(const Opened& served, const Opened& draft) {
    served.need_logits();
    draft.need_logits();
    served.check_same_tokens(draft);
    if (draft.shard.n_ranks > 1) throw Error(draft.name + ": draft: expected a whole model, got a rank's part of one");
    const std::uint32_t n_stages = shares_of(served).n_stages;
    if (draft.config().decoder.joins_rows && n_stages > 1)
        throw Error(draft.name + ": next-token head: expected ranks in one stage, got " + std::to_string(n_stages));
}

Arena take_arena(const Opened& opened, std::uint64_t n_bytes, Pages pages) {
    Arena arena(n_bytes, Pages::at_use);
    if (arena.size() < n_bytes)
        throw StatusError({Code::arena_too_small, "arena bytes", n_bytes, 0},
                          opened.name + ": memory: expected " + with_separators(n_bytes) +
                              " bytes, got less (a smaller context, or fewer sequences, need less)");
    // An arena of a tiny model has its pages before the first token: a page's first touch takes longer than a layer there.
    // A larger one is asked for in large pages: attention walks over more small ones than the CPU remembers.
    const std::span<std::byte> bytes = arena;
    if (n_bytes <= Arena::kLargeBytes) return arena;
#if defined(MADV_HUGEPAGE)
    madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);  // a wish: refused is as good as unasked
#endif
    if (pages == Pages::at_once) std::memset(bytes.data(), 0, bytes.size());
    return arena;
}

Runtime<Session> start_session(const Opened& opened, Limits limits, const SessionOptions& options) {
    limits = of_rank(opened, limits, options.isa);
    opened.plan_adapters(limits);
    Runtime<Session> running = start_alone(opened, limits, with_ranks(options));
    opened.use_adapters(running->workspace());
    return running;
}

Runtime<Session> start_alone(const Opened& opened, const Limits& limits, const SessionOptions& options) {
    Runtime<Session> running;
    running.plan = plan_alone(opened, limits);
    running.arena = take_arena(opened, running.plan.arena_bytes);
    make_alone(opened, options, running);
    return running;
}

Plan plan_alone(const Opened& opened, const Limits& limits) {
    Plan plan;
    require(make_plan(opened.config(), limits, plan), opened.name);
    return plan;
}

void make_alone(const Opened& opened, const SessionOptions& options, Runtime<Session>& session) {
    require(make_session(opened.model, session.plan.limits, session.arena, *session, with_executor(options)),
            opened.name);
}

Runtime<Workspace> plan_workspace(const Opened& opened, Limits limits, Pages pages) {
    Runtime<Workspace> workspace;
    limits = of_rank(opened, limits);
    opened.plan_adapters(limits);
    require(make_workspace_plan(opened.config(), limits, workspace.plan), opened.name);
    workspace.arena = take_arena(opened, workspace.plan.arena_bytes, pages);
    return workspace;
}

void make_workspace(const Opened& opened, const SessionOptions& options, Runtime<Workspace>& workspace) {
    require(make_workspace(opened.model, workspace.plan.limits, workspace.arena, *workspace,
                           with_executor(with_ranks(options))),
            opened.name);
    opened.use_adapters(*workspace);
}

Runtime<Workspace> start_workspace(const Opened& opened, Limits limits, const SessionOptions& options) {
    Runtime<Workspace> workspace = plan_workspace(opened, limits);
    make_workspace(opened, options, workspace);
    return workspace;
}

Runtime<CachePool> start_pool(const Opened& opened, const PoolLimits& limits, Pages pages) {
    Runtime<CachePool> pool;
    require(make_pool_plan(opened.config(), of_rank(opened, limits), pool.plan), opened.name);
    pool.arena = take_arena(opened, pool.plan.arena_bytes, pages);
    require(make_pool(opened.model, pool.plan.limits, pool.arena, *pool), opened.name);
    return pool;
}

Cache start_cache(const Opened& opened, Runtime<CachePool>& pool) {
    Cache cache;
    require(make_cache(*pool, cache), opened.name);
    return cache;
}

Runtime<Generator> start_generator(const Opened& opened, const Cache& cache, const GeneratorLimits& limits) {
    Runtime<Generator> generator;
    require(make_generator_plan(opened.model, opened.tokenizer, limits, generator.plan), opened.name);
    generator.arena = take_arena(opened, generator.plan.arena_bytes);
    require(make_generator(opened.model, opened.tokenizer, cache, generator.plan.limits, generator.arena, *generator),
            opened.name);
    return generator;
}

}  // namespace fovea::host
