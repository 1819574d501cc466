// What the engine asks of the machine: features, mapping, floating-point environment, team of threads.
#include "platform/features.h"
#include "platform/float_env.h"
#include "platform/team.h"
#include "tests/support/emulated_tiles.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fenv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fovea/executors.h"
#include "fovea/mapping.h"
#include "tests/platform/temporary_directory.h"
#if defined(__SSE__)
#include <xmmintrin.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

namespace {

using namespace fovea;

#if defined(FOVEA_EMULATED) && defined(__x86_64__)
constexpr bool kInValgrind = true;  // which is another processor than the kernel's, and always rounds to nearest
#else
constexpr bool kInValgrind = false;
#endif

#if defined(FOVEA_EMULATED)
constexpr bool kInEmulator = true;  // which has threads of its own
#else
constexpr bool kInEmulator = false;
#endif

/// The processor's flags in the kernel's words, with a space on both sides of each; empty where there is no such list.
std::string kernel_flags() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("flags") || line.starts_with("Features")) return line.substr(line.find(':') + 1) + ' ';
    return {};
}

TEST_CASE("features: what the CPU says is what the kernel says" * doctest::skip(kInValgrind)) {
    const std::string flags = kernel_flags();
    if (flags.empty()) return;
    [[maybe_unused]] const auto has = [&](const char* flag) {
        return flags.find(std::string(" ") + flag + ' ') != std::string::npos;
    };
    [[maybe_unused]] const CpuFeatures f = detect_features();
#if defined(__x86_64__)
    CHECK(f.avx2 == has("avx2"));
    CHECK(f.fma == has("fma"));
    CHECK(f.f16c == has("f16c"));
    CHECK(f.avx512 == (has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")));
    CHECK(f.avx512vnni == (has("avx512_vnni") && f.avx512));
    if (has("avx_vnni")) CHECK(f.avxvnni);  // older kernels do not list it
    if (!testing::emulates_tiles()) CHECK(f.amx == (has("amx_tile") && has("amx_int8")));
    CHECK_FALSE(f.neon);
#elif defined(__aarch64__)
    CHECK(f.neon);
    if (has("asimddp")) CHECK(f.dotprod);  // an emulator shows the host's list, with none of these words
    if (has("i8mm")) CHECK(f.i8mm);
    CHECK_FALSE(f.avx2);
#endif
}

TEST_CASE("features: covers asks for every flag that is needed and for no other") {
    const CpuFeatures none;
    CHECK(covers(none, none));
    CHECK(covers({.avx2 = true, .fma = true}, {.avx2 = true}));
    CHECK_FALSE(covers({.avx2 = true}, {.avx2 = true, .fma = true}));
    const auto each = {&CpuFeatures::avx2,   &CpuFeatures::fma,        &CpuFeatures::f16c,
                       &CpuFeatures::avx512, &CpuFeatures::avx512vnni, &CpuFeatures::avxvnni,
                       &CpuFeatures::amx,    &CpuFeatures::neon,       &CpuFeatures::dotprod,
                       &CpuFeatures::i8mm,   &CpuFeatures::mve,        &CpuFeatures::fetches_to_second_level};
    CHECK(each.size() == sizeof(CpuFeatures));  // one bool each: a new one belongs in this list
    for (const auto flag : each) {
        CpuFeatures one;
        one.*flag = true;
        CHECK(covers(one, one));
        CHECK_FALSE(covers(none, one));
    }
}

// ---- floating-point environment ------------------------------------------------------------------------------------

/// Makes this thread's environment as unlike the engine's as it goes, as a host may, and undoes it.
class HostileHost {
public:
    HostileHost() {
        fegetenv(&saved_);
        fesetround(FE_DOWNWARD);
#if defined(__SSE__)
        _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#elif defined(__aarch64__)
        std::uint64_t fpcr;
        __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
        __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1u << 24));  // flush to zero
#elif defined(__arm__)
        std::uint32_t fpscr;
        __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr));
        __asm__ volatile("vmsr fpscr, %0" : : "r"(fpscr | 1u << 24));
#endif
    }
    ~HostileHost() { fesetenv(&saved_); }

private:
    fenv_t saved_;
};

// volatile: computed when and where it is written, not by the compiler.
bool rounds_to_nearest() {
    volatile float one = 1.0f, more_than_half = 0.6e-7f;
    return one + more_than_half > 1.0f;
}
bool keeps_denormals() {
    volatile float small = 1.5e-38f, half = 0.5f;
    volatile float denormal = small * half;
    return denormal != 0.0f && denormal + denormal == small;
}

TEST_CASE("float_env: nearest and gradual inside, the caller's own after" * doctest::skip(kInValgrind)) {
    const HostileHost host;
    REQUIRE_FALSE(rounds_to_nearest());
    {
        const FloatEnv env;
        CHECK(rounds_to_nearest());
        CHECK(keeps_denormals());
    }
    CHECK_FALSE(rounds_to_nearest());
    CHECK(fegetround() == FE_DOWNWARD);
#if defined(__SSE__) || defined(__aarch64__) || defined(__arm__)
    CHECK_FALSE(keeps_denormals());
#endif
}

// ---- mapping -------------------------------------------------------------------------------------------------------

/// A directory of this test's own, removed with all it holds.
TEST_CASE("mapping: a file's bytes, for as long as the mapping lives") {
    const TemporaryDirectory directory;
    const std::string content("some bytes\0and more", 19);
    const std::string path = directory.file("a", content);
    Mapping mapping;
    REQUIRE(map_file(path.c_str(), mapping).ok());
    std::filesystem::remove(path);
    const auto holds = [&](const Mapping& m) {
        return m.bytes().size() == content.size() && !std::memcmp(m.bytes().data(), content.data(), content.size());
    };
    CHECK(holds(mapping));

    Mapping moved(std::move(mapping));
    CHECK(holds(moved));
    CHECK(mapping.bytes().empty());
    Mapping assigned;
    REQUIRE(map_file(directory.file("b", "other").c_str(), assigned).ok());
    assigned = std::move(moved);
    CHECK(holds(assigned));
    CHECK(moved.bytes().empty());
}

TEST_CASE("mapping: an empty file is empty bytes") {
    const TemporaryDirectory directory;
    Mapping mapping;
    REQUIRE(map_file(directory.file("full", "x").c_str(), mapping).ok());
    CHECK(map_file(directory.file("empty", "").c_str(), mapping).ok());
    CHECK(mapping.bytes().empty());
}

TEST_CASE("mapping: what is no readable file is refused by step and number, and changes nothing") {
    const TemporaryDirectory directory;
    Mapping mapping;
    REQUIRE(map_file(directory.file("a", "kept").c_str(), mapping).ok());
    const std::string pipe = (directory.path / "pipe").string();
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);  // nobody writes to it: opening must not wait for one who does
    const struct {
        std::string path;
        const char* what;
        int error;
    } cases[] = {{(directory.path / "none").string(), "open", ENOENT},
                 {directory.path.string(), "not a regular file", EISDIR},
                 {pipe, "not a regular file", EINVAL},
                 {"/dev/null", "not a regular file", EINVAL}};
    for (const auto& c : cases) {
        CAPTURE(c.path);
        const Status status = map_file(c.path.c_str(), mapping);
        CHECK(status.code == Code::io_error);
        CHECK(std::string(status.what) == c.what);
        CHECK(status.had == static_cast<std::uint64_t>(c.error));
        CHECK(mapping.bytes().size() == 4);
    }
}

// ---- team ----------------------------------------------------------------------------------------------------------

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

#if !defined(FOVEA_SANITIZED)  // the thread sanitizer ends a forked child that makes a thread
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
