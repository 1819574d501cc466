// How products are shared out: by what machines were measured to do.
#include "cluster/shares.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace fovea::cluster;

namespace {

/// Machines that are really so fast, and a network that takes so long for a product.
struct World {
    std::vector<double> speeds;
    double overhead = 1000;
    Shares shares;

    World(std::vector<double> real, double nanoseconds)
        : speeds(std::move(real)),
          overhead(nanoseconds),
          shares(std::vector<std::uint32_t>(speeds.size(), 1), nanoseconds) {}

    /// How long a product takes; what is measured is told.
    double multiply(Kind kind, double work, std::uint32_t n_units = 200) {
        std::vector<std::uint32_t> units(speeds.size());
        shares.divide(kind, work, n_units, units);
        CHECK(std::accumulate(units.begin(), units.end(), 0u) == n_units);
        double slowest = 0;
        const bool shared = units[0] < n_units;
        for (std::size_t i = 0; i < units.size(); ++i) {
            const double part = work * units[i] / n_units, time = part / speeds[i];
            slowest = std::max(slowest, time);
            if (units[i] && shared) shares.add(i, kind, part, time);
        }
        if (shared) shares.add_overhead(kind, overhead);
        return slowest + (shared ? overhead : 0);
    }
    /// Times of passes relative to the program alone.
    std::vector<double> passes(int n, Kind kind, double work, std::uint32_t n_units = 200) {
        std::vector<double> times;
        for (int i = 0; i < n; ++i) {
            times.push_back(multiply(kind, work, n_units) / (work / speeds[0]));
            shares.settle();
        }
        return times;
    }
};

}  // namespace

TEST_CASE("shares: equal machines have equal parts, from the second pass on whatever was presumed") {
    for (const double speed : {0.2, 30.0, 500.0}) {
        CAPTURE(speed);
        World world({speed, speed}, 1000);
        const auto times = world.passes(5, many_rows, speed * 1e7);
        CHECK(times[0] < 1.15);
        CHECK(times[1] == doctest::Approx(0.5).epsilon(0.01));
        CHECK(times[4] == doctest::Approx(0.5).epsilon(0.01));
    }
}

TEST_CASE("shares: each machine has what it does in the same time") {
    World world({10, 30, 20}, 1000);
    CHECK(world.passes(8, few_rows, 1e8).back() == doctest::Approx(1.0 / 6).epsilon(0.02));
}

TEST_CASE("shares: a machine that is too slow for a unit holds nobody up") {
    World world({30, 30, 0.5}, 1000);
    const auto times = world.passes(400, one_row, 3e7, 24);
    CHECK(times[0] < 8);
    CHECK(std::accumulate(times.begin() + 1, times.end(), 0.0) / 399 < 0.53);  // tried again now and then
}

TEST_CASE("shares: where the network takes longer than sharing gains, nothing is shared, and it is tried again") {
    World slow({10, 10}, 1e7);
    for (const double time : slow.passes(50, one_row, 1e7)) CHECK(time == doctest::Approx(1));
    World hiccup({10, 10}, 1e4);
    CHECK(hiccup.passes(5, many_rows, 1e7).back() < 0.52);
    hiccup.overhead = 1e9;
    (void)hiccup.passes(1, many_rows, 1e7);
    hiccup.overhead = 1e4;
    const auto times = hiccup.passes(100, many_rows, 1e7);
    CHECK(std::accumulate(times.begin(), times.end(), 0.0) / 100 < 0.55);  // one is forgotten
    World better({10, 10}, 1e7);
    (void)better.passes(3, many_rows, 1e7);
    better.overhead = 1e3;
    CHECK(better.passes(400, many_rows, 1e7).back() < 0.52);  // the network is free again
}

TEST_CASE("shares: passes without a kind of product say nothing of it") {
    World world({10, 10}, 1e7);
    (void)world.passes(3, many_rows, 1e7);
    for (int i = 0; i < 1000; ++i) (void)world.passes(1, one_row, 10);
    std::vector<std::uint32_t> units(2);
    world.shares.divide(many_rows, 1e7, 100, units);
    CHECK(units[0] == 100);
}

TEST_CASE("shares: who is gone has none from the next pass on") {
    World world({10, 10, 10}, 1000);
    (void)world.passes(3, many_rows, 1e8);
    std::vector<std::uint32_t> before(3), after(3);
    world.shares.divide(many_rows, 1e8, 90, before);
    world.shares.lose(1);
    world.shares.divide(many_rows, 1e8, 90, after);
    CHECK(before == after);  // the same within a pass
    CHECK(before == std::vector<std::uint32_t>{30, 30, 30});
    world.shares.settle();
    world.shares.divide(many_rows, 1e8, 90, after);
    CHECK(after == std::vector<std::uint32_t>{45, 0, 45});
    world.shares.lose(2);
    world.shares.settle();
    world.shares.divide(many_rows, 1e8, 90, after);
    CHECK(after == std::vector<std::uint32_t>{90, 0, 0});
}

TEST_CASE("shares: any numbers give parts of the whole") {
    std::uint64_t random = 1;
    const auto draw = [&] { return (random = random * 6364136223846793005u + 1442695040888963407u) >> 40; };
    for (int i = 0; i < 2000; ++i) {
        const std::size_t n = 1 + draw() % 6;
        std::vector<std::uint32_t> threads(n), units(n);
        for (auto& t : threads) t = static_cast<std::uint32_t>(draw() % 300);
        Shares shares(threads, static_cast<double>(draw() % 100000));
        for (int pass = 0; pass < 5; ++pass) {
            for (std::size_t m = 0; m < n; ++m)
                if (draw() % 2) shares.add(m, one_row, static_cast<double>(draw()), static_cast<double>(draw() % 1000));
            if (draw() % 2) shares.add_overhead(one_row, static_cast<double>(draw()));
            shares.settle();
            const auto n_units = static_cast<std::uint32_t>(1 + draw() % 50);
            shares.divide(one_row, static_cast<double>(1 + draw()), n_units, units);
            CHECK(std::accumulate(units.begin(), units.end(), 0u) == n_units);
        }
    }
}
