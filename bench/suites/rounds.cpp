#include <algorithm>
#include <vector>

#include "bench/suites/suites.h"
#include "host/base/clock.h"
#include "tools/measure/ceilings.h"
#include "tools/measure/median.h"

namespace fovea {
namespace {

constexpr double kRoundSeconds = 0.5;
constexpr std::size_t kWantedRounds = 5, kMostRounds = 15;
constexpr double kQuiet = 0.9;  // of the highest ceiling

struct Round {
    double ceiling;          // per second
    double median, fastest;  // seconds of a call
};

/// The first call finds the ceiling's data in the caches and the team's threads asleep: it counts only where it is the
/// only one.
Round run_round(const std::function<void()>& once) {
    std::vector<double> seconds;
    for (double total = 0; total < kRoundSeconds; total += seconds.back()) {
        const double start = host::seconds_now();
        once();
        seconds.push_back(host::seconds_now() - start);
    }
    if (seconds.size() > 1) seconds.erase(seconds.begin());
    return {0, median(seconds), *std::min_element(seconds.begin(), seconds.end())};
}

/// Those rounds in which the machine did what it can.
std::vector<Round> quiet(const std::vector<Round>& rounds) {
    double highest = 0;
    for (const Round& round : rounds) highest = std::max(highest, round.ceiling);
    std::vector<Round> kept;
    for (const Round& round : rounds)
        if (round.ceiling >= kQuiet * highest) kept.push_back(round);
    return kept;
}

std::vector<Round> measure(const Ceiling& ceiling, const std::function<void()>& once) {
    std::vector<Round> rounds;
    once();  // pages, caches and clocks warm up
    double before = ceiling.measure();
    while (rounds.size() < kMostRounds && quiet(rounds).size() < kWantedRounds) {
        Round round = run_round(once);
        const double after = ceiling.measure();
        round.ceiling = std::max(before, after);
        before = after;
        rounds.push_back(round);
    }
    return quiet(rounds);
}

}  // namespace

void run_rounds(benchmark::State& state, const Ceiling& ceiling, double amount, const std::function<void()>& once) {
    for (auto _ : state) {
        const std::vector<Round> rounds = measure(ceiling, once);
        const auto of = [&](auto&& value) {
            std::vector<double> values;
            for (const Round& round : rounds) values.push_back(value(round));
            return values;
        };
        const double seconds = median(of([](const Round& r) { return r.median; }));
        const std::vector<double> best = of([&](const Round& r) { return amount / r.fastest / r.ceiling; });
        state.SetIterationTime(seconds);
        state.counters[ceiling.unit] = amount / seconds * 1e-9;
        state.counters["ceiling"] = median(of([](const Round& r) { return r.ceiling; })) * 1e-9;
        state.counters["share_of_peak"] = median(of([&](const Round& r) { return amount / r.median / r.ceiling; }));
        state.counters["best_share"] = *std::max_element(best.begin(), best.end());
        state.counters["rounds"] = static_cast<double>(rounds.size());
    }
}

Ceiling fma_ceiling(const char* isa, std::uint32_t n_threads) {
    return {"GFLOPS", [=] { return measure_fma_peak(isa, n_threads); }};
}

Ceiling int8_ceiling(const char* isa, std::uint32_t n_threads) {
    return {"GOPS", [=] { return measure_int8_peak(isa, n_threads); }};
}

Ceiling read_ceiling(const char* isa, std::span<const std::byte> bytes, std::uint32_t n_threads) {
    return {"GB_s", [=] { return measure_read_peak(isa, bytes, n_threads).bytes_per_second; }};
}

}  // namespace fovea
