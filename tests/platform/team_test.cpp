// A team of threads: the engine's own, and OpenMP's.
#include "platform/team.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "fovea/executors.h"
#include "platform/float_env.h"
#include "tests/platform/hostile_host.h"
#if defined(__linux__)
#include <sched.h>
#endif

namespace {

using namespace fovea;

#if defined(FOVEA_EMULATED)
constexpr bool kInEmulator = true;  // which has threads of its own
#else
constexpr bool kInEmulator = false;
#endif

struct alignas(64) TeamPlace {
    std::byte bytes[kTeamBytes];
};

#if defined(FOVEA_THREADS)
constexpr std::uint32_t kSizes[] = {1, 2, 3, 4, 8};
#else
constexpr std::uint32_t kSizes[] = {1};
#endif

/// A team of a size, and what runs it: null for the engine's own threads, and OpenMP's if the build has them.
struct TeamCase {
    TeamRunner run;
    std::uint32_t n;
};

std::vector<TeamCase> team_cases() {
    std::vector<TeamCase> all;
    for (const std::uint32_t n : kSizes) all.push_back({nullptr, n});
    for (const std::uint32_t n : kSizes)
        if (const TeamRunner openmp = openmp_executor().run) all.push_back({openmp, n});
    return all;
}

TEST_CASE("team: every member runs once, in the engine's floating-point environment" * doctest::skip(kInValgrind)) {
    const HostileHost host;
    for (const TeamCase& c : team_cases()) {
        const std::uint32_t n = c.n;
        CAPTURE(n);
        CAPTURE(c.run == nullptr);
        TeamPlace place;
        REQUIRE(make_threads(n));
        Team* team = start_team(&place, n, c.run);
        CHECK(team_size(*team) == n);
        struct Seen {
            std::atomic<std::uint32_t> runs[8], strange;
        } seen{};
        const auto work = [](void* context, std::uint32_t member) {
            Seen& s = *static_cast<Seen*>(context);
            ++s.runs[member];
            if (!rounds_to_nearest() || !keeps_denormals()) ++s.strange;
        };
        run_team(*team, work, &seen);
        for (std::uint32_t member = 0; member < 8; ++member) CHECK(seen.runs[member] == (member < n ? 1u : 0u));
        CHECK(seen.strange == 0);
        CHECK_FALSE(rounds_to_nearest());
    }
}

TEST_CASE("team: teams of several sizes take turns with the threads of the largest") {
    constexpr std::uint32_t kLargest = kSizes[std::size(kSizes) - 1];
    TeamPlace places[std::size(kSizes)];
    Team* teams[std::size(kSizes)];
    REQUIRE(make_threads(kLargest));
    for (std::size_t i = 0; i < std::size(kSizes); ++i) teams[i] = start_team(&places[i], kSizes[i]);
    static std::atomic<std::uint32_t> n_known, n_runs;
    const auto work = [](void*, std::uint32_t) {
        thread_local const std::uint32_t number = n_known++;  // of a thread that was not here before
        n_runs += number < kLargest;
    };
    for (int round = 0; round < 5; ++round)
        for (std::size_t i = 0; i < std::size(kSizes); ++i) {
            n_runs = 0;
            run_team(*teams[i], work, nullptr);
            CHECK(n_runs == kSizes[i]);
            CHECK(team_size(*teams[i]) == kSizes[i]);
        }
    CHECK(n_known == kLargest);
}

TEST_CASE("team: after a barrier every member sees what all wrote before it") {
    constexpr std::uint32_t kPhases = 2000;
    for (const TeamCase& c : team_cases()) {
        const std::uint32_t n = c.n;
        CAPTURE(n);
        CAPTURE(c.run == nullptr);
        TeamPlace place;
        REQUIRE(make_threads(n));
        struct Board {
            Team* team;
            std::uint32_t phase[8];  // plain memory: the barrier alone orders it
            std::atomic<std::uint32_t> wrong;
        } board{start_team(&place, n, c.run), {}, 0};
        const auto work = [](void* context, std::uint32_t member) {
            Board& b = *static_cast<Board*>(context);
            for (std::uint32_t phase = 1; phase <= kPhases; ++phase) {
                b.phase[member] = phase;
                barrier(*b.team);
                for (std::uint32_t i = 0; i < team_size(*b.team); ++i) b.wrong += b.phase[i] != phase;
                barrier(*b.team);
            }
        };
        run_team(*board.team, work, &board);
        CHECK(board.wrong == 0);
    }
}

#if defined(FOVEA_THREADS)

TEST_CASE("team: a phase's pieces are taken once each, by whoever comes") {
    constexpr std::uint32_t kPhases = 200, kPieces = 37;
    for (const TeamCase& c : team_cases()) {
        const std::uint32_t n = c.n;
        if (n == 1) continue;
        CAPTURE(n);
        CAPTURE(c.run == nullptr);
        TeamPlace place;
        REQUIRE(make_threads(n));
        struct Work {
            Team* team;
            std::uint32_t done[kPieces];  // plain memory: a piece is one member's, and the barrier orders phases
        } all{start_team(&place, n, c.run), {}};
        const auto work = [](void* context, std::uint32_t) {
            Work& w = *static_cast<Work*>(context);
            for (std::uint32_t phase = 0; phase < kPhases; ++phase) {
                for (std::uint32_t piece = claim_work(*w.team); piece < kPieces; piece = claim_work(*w.team))
                    ++w.done[piece];
                barrier(*w.team);
            }
        };
        for (int i = 0; i < 2; ++i) run_team(*all.team, work, &all);
        for (const std::uint32_t times : all.done) CHECK(times == 2 * kPhases);
    }
}

std::uint64_t cpu_ns(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

TEST_CASE("team: members that wait for long sleep, and so does a team without work") {
    TeamPlace place;
    REQUIRE(make_threads(2));
    struct Late {
        Team* team;
        std::uint64_t waited_ns;  // of the waiting member's CPU
    } late{start_team(&place, 2), ~std::uint64_t{0}};
    const auto work = [](void* context, std::uint32_t member) {
        Late& l = *static_cast<Late*>(context);
        if (member == 0) usleep(400'000);
        const std::uint64_t before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        barrier(*l.team);
        if (member == 1) l.waited_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    };
    run_team(*late.team, work, &late);
    CHECK(late.waited_ns < 100'000'000);  // a spinning member would have burnt 400 ms

    constexpr useconds_t kLongestSpin = 50'000;  // us; before idle workers sleep, on a machine that does other things
    usleep(kLongestSpin);
    const std::uint64_t before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    usleep(300'000);
    CHECK(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before < 50'000'000);
}

/// Adds up what its members wrote before they met.
struct Sum {
    Team* team;
    std::atomic<std::uint32_t> done{0};

    /// 100 in shares of as many as there are.
    static void work(void* context, std::uint32_t member) {
        Sum& s = *static_cast<Sum*>(context);
        const std::uint32_t n = team_size(*s.team);
        barrier(*s.team);
        s.done += 100 * (member + 1) / n - 100 * member / n;
    }
};

#if !defined(FOVEA_SANITIZED)  // the thread sanitizer ends a forked child that makes a thread

/// Whether `test` is true in a forked child, within ten seconds.
bool in_child(bool (*test)(void*), void* argument) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        alarm(10);  // ends one that waits for ever
        _exit(test(argument) ? 0 : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("team: a forked child runs its parent's team alone, and a new one on threads of its own") {
    TeamPlace place;
    REQUIRE(make_threads(3));
    Sum sum{start_team(&place, 3)};
    const auto test = [](void* context) {
        Sum& s = *static_cast<Sum*>(context);
        run_team(*s.team, Sum::work, &s);
        if (s.done != 100 || team_size(*s.team) != 1) return false;
        if (!make_threads(2)) return false;
        run_team(*s.team, Sum::work, &s);
        return s.done == 200 && team_size(*s.team) == 2;
    };
    CHECK(in_child(test, &sum));
    run_team(*sum.team, Sum::work, &sum);
    CHECK(sum.done == 100);
    CHECK(team_size(*sum.team) == 3);
}
#endif

/// The threads of this process; 0 if they cannot be counted.
std::size_t n_tasks() {
    std::size_t n = 0;
    if (kInEmulator || !std::filesystem::exists("/proc/self/task")) return 0;
    for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++n;
    return n;
}

TEST_CASE("team: ended threads are gone, not within a run, and others can be made") {
    TeamPlace place;
    drop_threads();
    const std::size_t n_before = n_tasks();
    drop_threads();
    REQUIRE(make_threads(3));
    Sum sum{start_team(&place, 3)};
    const auto work = [](void* context, std::uint32_t member) {
        drop_threads();
        Sum::work(context, member);
    };
    run_team(*sum.team, work, &sum);
    CHECK(team_size(*sum.team) == 3);
    CHECK(threads_here() == 3);
    std::thread(drop_threads).join();
    CHECK(threads_here() == 3);
    drop_threads();
    CHECK(threads_here() == 1);
    for (int ms = 0; ms < 2000 && n_tasks() != n_before; ++ms) usleep(1000);  // the kernel's list is late
    CHECK(n_tasks() == n_before);
    run_team(*sum.team, Sum::work, &sum);
    CHECK(team_size(*sum.team) == 1);
    REQUIRE(make_threads(2));
    run_team(*sum.team, Sum::work, &sum);
    CHECK(team_size(*sum.team) == 2);
    CHECK(sum.done == 300);
}

TEST_CASE("team: another thread runs it on what it has, and its threads end with it") {
    TeamPlace place;
    REQUIRE(make_threads(3));
    Sum sum{start_team(&place, 3)};
    const std::size_t n_before = n_tasks();
    std::thread([&] {
        run_team(*sum.team, Sum::work, &sum);
        CHECK(team_size(*sum.team) == 1);
        REQUIRE(make_threads(2));
        run_team(*sum.team, Sum::work, &sum);
        CHECK(team_size(*sum.team) == 2);
        if (n_before) CHECK(n_tasks() == n_before + 2);
    }).join();
    for (int ms = 0; ms < 2000 && n_tasks() != n_before; ++ms) usleep(1000);  // the kernel's list is late
    CHECK(n_tasks() == n_before);
    CHECK(sum.done == 200);
}

TEST_CASE("team: within a run its own thread's teams have one member") {
    TeamPlace outer_place, inner_place;
    REQUIRE(make_threads(2));
    struct Both {
        Sum outer, inner;
    } both{{start_team(&outer_place, 2)}, {start_team(&inner_place, 2)}};
    const auto work = [](void* context, std::uint32_t member) {
        Both& b = *static_cast<Both*>(context);
        if (member == 0) run_team(*b.inner.team, Sum::work, &b.inner);
        Sum::work(&b.outer, member);
    };
    run_team(*both.outer.team, work, &both);
    CHECK(team_size(*both.inner.team) == 1);
    CHECK(both.inner.done == 100);
    CHECK(both.outer.done == 100);
}

TEST_CASE("team: within OpenMP's own run a team has as many members as OpenMP gives") {
    const TeamRunner openmp = openmp_executor().run;
    if (!openmp) return;
    TeamPlace place;
    Sum sum{start_team(&place, 3, openmp)};
    const auto work = [](void* context, std::uint32_t member) {
        Sum& s = *static_cast<Sum*>(context);
        if (member == 0) run_team(*s.team, Sum::work, &s);
    };
    openmp(nullptr, 2, work, &sum);
    CHECK(team_size(*sum.team) == 1);
    CHECK(sum.done == 100);
    run_team(*sum.team, Sum::work, &sum);
    CHECK(team_size(*sum.team) == 3);
    CHECK(sum.done == 200);
}

#if defined(__linux__) && !defined(FOVEA_SANITIZED) && !defined(FOVEA_EMULATED)  // they want memory of their own
TEST_CASE("team: where the system gives no threads there are those of before, and no process ends") {
    TeamPlace place;
    const auto stays_at_two = [](void* at, int resource, rlim_t limit) {
        if (!make_threads(2)) return false;
        Sum sum{start_team(at, 2)};
        const rlimit all{limit, limit};
        if (setrlimit(static_cast<__rlimit_resource>(resource), &all) != 0 || make_threads(100)) return false;
        run_team(*sum.team, Sum::work, &sum);
        return sum.done == 100 && team_size(*sum.team) == 2 && make_threads(2);
    };
    static const auto test = stays_at_two;
    CHECK(in_child([](void* at) { return test(at, RLIMIT_AS, 1); }, &place));
    const auto as_nobody = [](void* at) {
        constexpr uid_t kNobody = 65534;  // root has no such limit
        if (geteuid() == 0 && setuid(kNobody) != 0) return true;
        return test(at, RLIMIT_NPROC, 1);
    };
    CHECK(in_child(as_nobody, &place));
}
#endif

#else

TEST_CASE("team: without threads there is one member") { CHECK_FALSE(make_threads(2)); }

#endif

}  // namespace
