// Sessions on threads of a host's own, and on several host threads at once.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "fovea/session.h"
#include "tests/support/command_line.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/executors.h"
#include "tests/support/same_bits.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

using Work = void (*)(void* argument, std::uint32_t member);

/// A host that starts its threads anew for each run; the caller is the last member.
struct ThreadHost {
    std::atomic<std::uint32_t> n_runs{0}, n_members{0};

    static void run(void* context, std::uint32_t n, Work work, void* argument) {
        ThreadHost& host = *static_cast<ThreadHost*>(context);
        ++host.n_runs;
        host.n_members = n;
        std::vector<std::thread> threads;
        for (std::uint32_t member = 0; member + 1 < n; ++member) threads.emplace_back(work, argument, member);
        work(argument, n - 1);
        for (std::thread& thread : threads) thread.join();
    }
    Executor executor() { return {run, this}; }
};

/// A session in memory of its own, made with options.
struct HostedSession {
    Plan plan;
    AlignedBytes arena;
    Session session;

    HostedSession(const Model& model, const Limits& limits, const SessionOptions& options = {}) {
        REQUIRE(make_plan(model.config(), limits, plan).ok());
        arena.resize(plan.arena_bytes, std::byte{0xee});
        REQUIRE(make_session(model, limits, arena, session, options).ok());
    }
    /// The logits of a prompt of 40 tokens, then of five more one by one.
    std::vector<float> logits() {
        const std::uint32_t vocab_size = session.model().config().decoder.vocab_size;
        const auto tokens = some_tokens(45, vocab_size);
        std::vector<float> all(45 * std::size_t{vocab_size});
        const std::span<const Token> text(tokens);
        const std::span<float> out(all);
        REQUIRE(rewind(session, 0).ok());
        REQUIRE(forward(session, text.first(40), out.first(40 * vocab_size)).ok());
        for (std::size_t i = 40; i < 45; ++i)
            REQUIRE(forward(session, text.subspan(i, 1), out.subspan(i * vocab_size, vocab_size)).ok());
        return all;
    }
};

std::size_t n_tasks() {
    std::size_t n = 0;
    std::error_code none;
    for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task", none)) ++n;
    return n;
}

}  // namespace

TEST_CASE("executor: a host's threads give the bits of one thread, and the engine makes none") {
    for (const NamedConfig& c : decoder_configs()) {
        CAPTURE(c.name);
        const SmallModel small(c.config, Type::f32);
        HostedSession alone(small.model, {});
        const auto want = alone.logits();
        std::uint32_t n_runs = 0;
        for (const std::uint32_t n : {2u, 3u, 5u}) {
            CAPTURE(n);
            ThreadHost host;
            const std::size_t n_before = n_tasks();
            HostedSession hosted(small.model, {.n_threads = n}, {.executor = host.executor()});
            CHECK(n_tasks() <= n_before);  // a thread that has just ended may still be listed
            CHECK(same_bits(hosted.logits(), want));
            if (host.n_runs) CHECK(host.n_members == n);
            n_runs += host.n_runs;
            if (default_threads() == 1) continue;  // maybe a build without threads
            HostedSession own(small.model, {.n_threads = n});
            CHECK(same_bits(own.logits(), want));
        }
        if (std::string_view(c.name) == "wide") CHECK(n_runs > 0);  // others may be too small to be worth sharing
    }
}

TEST_CASE("executor: OpenMP's team starts its threads with the session, and makes do with one in a parallel region") {
    const Executor openmp = openmp_executor();
    if (!openmp.run) return;
    const SmallModel small(decoder_configs()[2].config, Type::q8);
    HostedSession alone(small.model, {});
    const auto want = alone.logits();
    std::thread([&] {
        HostedSession session(small.model, {.n_threads = 3}, {.executor = openmp});
        const std::size_t n_before = n_tasks();
        CHECK(same_bits(session.logits(), want));
        CHECK(n_tasks() <= n_before);  // a thread of another test that has just ended may still be listed
        struct Inner {
            HostedSession& session;
            std::vector<float> logits;
        } inner{session, {}};
        const auto work = [](void* argument, std::uint32_t member) {
            Inner& i = *static_cast<Inner*>(argument);
            if (member == 0) i.logits = i.session.logits();
        };
        openmp.run(openmp.context, 2, work, &inner);
        CHECK(same_bits(inner.logits, want));
    }).join();
}

TEST_CASE("executor: an instruction set's name still does as the last argument, and both go together") {
    const SmallModel small(llama_config(), Type::f32);
    Plan plan;
    REQUIRE(make_plan(small.model.config(), {}, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    REQUIRE(make_session(small.model, {}, arena, session, "scalar").ok());
    CHECK(std::string_view(session.isa()) == "scalar");
    ThreadHost host;
    REQUIRE(make_session(small.model, {}, arena, session, {.isa = "scalar", .executor = host.executor()}).ok());
    CHECK(std::string_view(session.isa()) == "scalar");
    CHECK(make_session(small.model, {}, arena, session, {.isa = "abacus"}).code == Code::isa_unavailable);
    REQUIRE(make_session(small.model, {}, arena, session, nullptr).ok());
    CHECK(std::string_view(session.isa()) == best_without_tiles());
}

TEST_CASE("threads: OpenMP's variables change nothing of own threads, and no text of OpenMP's team") {
    RunSettings impossible, few;
    impossible.environment = {"OMP_STACKSIZE=900G", "GOMP_STACKSIZE=900000000", "OMP_THREAD_LIMIT=1",
                              "OMP_NUM_THREADS=1", "OMP_DYNAMIC=true"};
    few.environment = {"OMP_THREAD_LIMIT=2", "OMP_NUM_THREADS=1", "OMP_DYNAMIC=true"};
    const char* n_threads = default_threads() == 1 ? "1" : "3";
    const std::string want = output_of({"run", "-p", "lights off", "-n", "4", "--threads", "1"});
    for (const NamedExecutor& by : executors()) {
        CAPTURE(by.name);
        const Ran ran = run_fovea({"run", "-p", "lights off", "-n", "4", "--threads", n_threads, "--executor", by.name},
                                  by.executor.run ? few : impossible);
        CHECK(ran.status == 0);
        CHECK(ran.out == want);
    }
    check_refused({"run", "-p", "lights off", "--executor", "pool"}, 1, "--executor: expected one of ");
}

TEST_CASE(
    "sessions: several host threads at once over one model, alone, with executors and with threads of their own") {
    const SmallModel small(decoder_configs()[2].config, Type::q8);
    HostedSession alone(small.model, {});
    const auto want = alone.logits();
    constexpr int kHosts = 8, kRounds = 3;
    std::atomic<int> n_same{0};
    std::vector<std::thread> hosts;
    for (int i = 0; i < kHosts; ++i)
        hosts.emplace_back([&, i] {
            const std::uint32_t n_threads = i % 4 == 0 || (i % 4 == 1 && default_threads() == 1) ? 1 : 2;
            for (int round = 0; round < kRounds; ++round) {
                ThreadHost host;
                SessionOptions options;
                if (i % 4 == 2) options.executor = host.executor();
                if (i % 4 == 3) options.executor = executors().back().executor;
                HostedSession session(small.model, {.n_threads = n_threads}, options);
                n_same += same_bits(session.logits(), want);
            }
        });
    for (std::thread& host : hosts) host.join();
    CHECK(n_same == kHosts * kRounds);
}

TEST_CASE("sessions: one made on a thread that has ended runs on another, with the same bits") {
    const SmallModel small(decoder_configs()[2].config, Type::q8);
    HostedSession alone(small.model, {});
    const auto want = alone.logits();
    for (const NamedExecutor& by : executors()) {
        CAPTURE(by.name);
        const Limits limits{.n_threads = default_threads() == 1 && !by.executor.run ? 1u : 3u};
        std::unique_ptr<HostedSession> session;
        std::thread([&] {
            session = std::make_unique<HostedSession>(small.model, limits, SessionOptions{.executor = by.executor});
            CHECK(same_bits(session->logits(), want));
        }).join();
        CHECK(same_bits(session->logits(), want));
    }
}
