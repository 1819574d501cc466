#include "platform/team.h"

#include <atomic>
#include <new>

#include "fovea/executors.h"
#include "platform/epoch.h"
#include "platform/float_env.h"

namespace fovea {

struct Team {
    TeamRunner run = nullptr;  // null: run_on_threads
    void* context = nullptr;
    std::uint32_t n_threads = 1;
    bool alone = false;  // every member can have a CPU of its own
    bool by_openmp = false;
    alignas(64) std::atomic<std::uint32_t> n_members{1};  // of the current run
    TakenCpus cpus;                                       // on which its members began
    alignas(64) std::atomic<std::uint32_t> n_arrived{0};  // at the barrier
    std::atomic<std::uint32_t> n_taken{0};                // pieces since the last one; changed in other phases
    alignas(64) Epoch generation;                         // of the barrier
};
static_assert(sizeof(Team) <= kTeamBytes && alignof(Team) <= 64);

namespace {

#if defined(FOVEA_OPENMP)
constexpr bool kHasOpenmp = true;
#else
constexpr bool kHasOpenmp = false;
#endif

struct Work {
    Team& team;
    void (*work)(void* context, std::uint32_t member);
    void* context;
};

void run_member(void* argument, std::uint32_t member) noexcept {
    const Work& w = *static_cast<const Work*>(argument);
    if (w.team.alone) take_cpu(w.team.cpus);
    const FloatEnv env;
    w.work(w.context, member);
}

/// OpenMP may give fewer threads than it is asked for, which shows only within: each member notes the number before it begins.
void run_openmp_member(void* argument, std::uint32_t member) noexcept {
    static_cast<const Work*>(argument)->team.n_members.store(openmp_members(), std::memory_order_relaxed);
    run_member(argument, member);
}

}  // namespace

Team* start_team(void* place, std::uint32_t n_threads, TeamRunner run, void* context) noexcept {
    Team* team = new (place) Team;
    team->run = run;
    team->context = context;
    team->n_threads = n_threads;
    team->n_members.store(n_threads, std::memory_order_relaxed);
    team->alone = n_threads <= usable_cpus();
    team->by_openmp = kHasOpenmp && run && run == openmp_executor().run;
    constexpr auto kNoWork = [](void*, std::uint32_t) {};
    if (kHasOpenmp && team->by_openmp && n_threads > 1) run(context, n_threads, kNoWork, nullptr);
    return team;
}

void run_team(Team& team, void (*work)(void* context, std::uint32_t member), void* context) noexcept {
    std::uint32_t n = team.n_threads;
    if (n > 1 && !team.run && threads_here() < n) n = threads_here();
    team.n_members.store(n, std::memory_order_relaxed);
    team.n_taken.store(0, std::memory_order_relaxed);
    team.cpus.clear();
    Work w{team, work, context};
    if (n == 1)
        run_member(&w, 0);
    else if (team.run)
        team.run(team.context, n, kHasOpenmp && team.by_openmp ? run_openmp_member : run_member, &w);
    else
        run_on_threads(nullptr, n, run_member, &w);
}

void barrier(Team& team) noexcept {
    const std::uint32_t n_members = team_size(team);
    if (n_members == 1) return;
    const std::uint32_t old = team.generation.value();  // can't change before we arrive
    if (team.n_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < n_members)
        return team.generation.wait(old, kSpinNs, team.alone);
    team.n_arrived.store(0, std::memory_order_relaxed);
    team.n_taken.store(0, std::memory_order_relaxed);
    team.generation.set(old + 1);
}

std::uint32_t claim_work(Team& team) noexcept { return team.n_taken.fetch_add(1, std::memory_order_relaxed); }

std::uint32_t team_size(const Team& team) noexcept { return team.n_members.load(std::memory_order_relaxed); }

}  // namespace fovea
