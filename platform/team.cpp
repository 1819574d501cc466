#include "team.h"

#include <new>

#include "float_env.h"

#if defined(FOVEA_OPENMP)
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#endif

namespace fovea {

#if defined(FOVEA_OPENMP)

// Longer than any phase's own jitter, shorter than a scheduler's time slice by a factor of a hundred.
constexpr std::uint64_t kSpinNs = 50'000;
// Pauses between looks at the clock: about a microsecond where a pause is 40 ns, a tenth of one where it is nothing.
constexpr int kPausesPerLook = 32;

struct Team {
    std::uint32_t n_threads = 1;
    bool alone = false;                                    // every member can have a CPU of its own
    alignas(64) std::atomic<std::uint32_t> n_members{1};   // of the current run
    alignas(64) std::atomic<std::uint32_t> n_arrived{0};   // at the barrier
    std::atomic<std::uint32_t> n_taken{0};                 // pieces since the last one; changed in other phases
    alignas(64) std::atomic<std::uint32_t> generation{0};  // of the barrier; members sleep on it
};
static_assert(sizeof(Team) <= kTeamBytes && alignof(Team) <= 64);

namespace {

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");  // `yield` does nothing on the cores we know; this gives some nanoseconds of rest
#elif defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/// Nanoseconds of a clock that only moves forward.
std::uint64_t clock_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Whether `generation` left `old` within kSpinNs. Where members share CPUs, another may need this one.
bool spin(const std::atomic<std::uint32_t>& generation, std::uint32_t old, bool alone) noexcept {
    const std::uint64_t start = clock_ns();
    do {
        for (int i = 0; i < kPausesPerLook; ++i) {
            if (generation.load(std::memory_order_acquire) != old) return true;
            alone ? pause() : static_cast<void>(sched_yield());
        }
    } while (clock_ns() - start < kSpinNs);
    return false;
}

/// Members of this thread's largest team: OpenMP keeps as many threads as its last region had, so all have that many.
thread_local std::uint32_t n_kept = 1;
/// The process that has them: a forked child knows the number, and its OpenMP may wait for what it has not.
thread_local pid_t kept_by = 0;

/// Makes as many threads as `wanted` says, each the next, so that all are there at once; what is left of it was refused.
void* try_threads(void* wanted) noexcept {
    auto& n = *static_cast<std::uint32_t*>(wanted);
    pthread_t next{};
    if (n == 0) return nullptr;
    --n;
    if (pthread_create(&next, nullptr, try_threads, wanted) == 0)
        pthread_join(next, nullptr);
    else
        ++n;
    return nullptr;
}

}  // namespace

bool make_threads(std::uint32_t n_threads) noexcept {
    if (n_threads == 1) return true;
    if (n_kept > 1 && kept_by != getpid()) return false;
    // Where it gets no thread OpenMP ends the process, so it is asked for what is known to be there.
    std::uint32_t n_new = n_threads > n_kept ? n_threads - n_kept : 0;
    try_threads(&n_new);
    if (n_new) return false;
    // The first region makes the threads; every later one finds them made.
    Team team;
    team.n_threads = n_threads;
    run_team(
        team, [](void* context, std::uint32_t) { wait_team(*static_cast<Team*>(context)); }, &team);
    if (team_size(team) != n_threads) {
        team.n_threads = n_kept;  // once more as it was, lest the next region of an earlier team has others
        run_team(
            team, [](void*, std::uint32_t) {}, nullptr);
        return false;
    }
    if (n_kept < n_threads) n_kept = n_threads;
    kept_by = getpid();
    return true;
}

Team* start_team(void* place, std::uint32_t n_threads) noexcept {
    Team* team = new (place) Team;
    team->n_threads = n_threads;
    team->n_members.store(n_threads, std::memory_order_relaxed);
    team->alone = n_threads <= static_cast<std::uint32_t>(omp_get_num_procs());
    return team;
}

void run_team(Team& team, void (*work)(void* context, std::uint32_t member), void* context) noexcept {
    if (team.n_threads == 1) {
        const FloatEnv env;
        work(context, 0);
        return;
    }
    const int dynamic = omp_get_dynamic();  // OpenMP's freedom to give fewer threads than asked for: not now
    if (dynamic) omp_set_dynamic(0);
    team.n_taken.store(0, std::memory_order_relaxed);
#pragma omp parallel num_threads(static_cast <int>(n_kept < team.n_threads ? team.n_threads : n_kept))
    {
        const auto member = static_cast<std::uint32_t>(omp_get_thread_num());
        const auto n_had = static_cast<std::uint32_t>(omp_get_num_threads());
        const std::uint32_t n_members = n_had < team.n_threads ? n_had : team.n_threads;
        if (member < n_members) {  // the others are not of this team; LLVM's OpenMP lets them spin for 200 ms
            const FloatEnv env;
            // Every member stores the same number, so that none has to wait for another's.
            team.n_members.store(n_members, std::memory_order_relaxed);
            work(context, member);
        }
    }
    if (dynamic) omp_set_dynamic(1);
}

void wait_team(Team& team) noexcept {
    const std::uint32_t n_members = team_size(team);
    if (n_members == 1) return;
    const std::uint32_t old = team.generation.load(std::memory_order_relaxed);  // can't change before we arrive
    if (team.n_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == n_members) {
        team.n_arrived.store(0, std::memory_order_relaxed);
        team.n_taken.store(0, std::memory_order_relaxed);
        team.generation.store(old + 1, std::memory_order_release);
        team.generation.notify_all();
        return;
    }
    if (spin(team.generation, old, team.alone)) return;
    team.generation.wait(old, std::memory_order_acquire);
}

std::uint32_t take_piece(Team& team) noexcept { return team.n_taken.fetch_add(1, std::memory_order_relaxed); }

std::uint32_t team_size(const Team& team) noexcept { return team.n_members.load(std::memory_order_relaxed); }

#else

struct Team {};

bool make_threads(std::uint32_t n_threads) noexcept { return n_threads == 1; }

Team* start_team(void* place, std::uint32_t) noexcept { return new (place) Team; }

void run_team(Team&, void (*work)(void* context, std::uint32_t member), void* context) noexcept {
    const FloatEnv env;
    work(context, 0);
}

void wait_team(Team&) noexcept {}

std::uint32_t take_piece(Team&) noexcept { return 0; }

std::uint32_t team_size(const Team&) noexcept { return 1; }

#endif

}  // namespace fovea
