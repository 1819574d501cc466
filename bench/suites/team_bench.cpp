// What meeting costs a team: a barrier whose members arrive together, and a run whose members spin or sleep before it.
#include "bench/suites/suites.h"

#include <algorithm>
#include <functional>

#include "fovea/executors.h"
#include "host/base/clock.h"
#include "platform/team.h"

namespace fovea {
namespace {

class BenchTeam {
public:
    BenchTeam(std::uint32_t n_threads, const Executor& executor)
        : made_(executor.run || make_threads(n_threads)),
          team_(start_team(place_, n_threads, executor.run, executor.context)) {}
    BenchTeam(const BenchTeam&) = delete;
    BenchTeam& operator=(const BenchTeam&) = delete;

    [[nodiscard]] bool made() const { return made_; }
    /// Seconds of a run whose members meet so often and do nothing else.
    double run(int n_meetings) {
        Work work{team_, n_meetings};
        const double start = host::seconds_now();
        run_team(
            *team_,
            [](void* context, std::uint32_t) {
                const Work& w = *static_cast<const Work*>(context);
                for (int i = 0; i < w.n_meetings; ++i) barrier(*w.team);
            },
            &work);
        return host::seconds_now() - start;
    }

private:
    struct Work {
        Team* team;
        int n_meetings;
    };
    alignas(64) std::byte place_[kTeamBytes];
    bool made_;
    Team* team_;
};

/// The median of so many samples is the benchmark's time.
void take_median(benchmark::State& state, BenchTeam& team, int n, const std::function<double()>& sample) {
    if (!team.made()) return state.SkipWithError("expected threads, got fewer");
    std::vector<double> seconds;
    for (int i = 0; i < n; ++i) seconds.push_back(sample());
    std::sort(seconds.begin(), seconds.end());
    for (auto _ : state) state.SetIterationTime(seconds[seconds.size() / 2]);
    state.counters["p90_us"] = seconds[seconds.size() * 9 / 10] * 1e6;
}

void add_teams_of(const std::string& name, const Executor& executor) {
    for (std::uint32_t n = 2; n <= usable_cpus(); n *= 2) {
        const std::string threads = "/" + name + "/threads:" + std::to_string(n);
        add("team/meet" + threads, [n, executor](benchmark::State& state) {
            BenchTeam team(n, executor);
            constexpr int kMeetings = 1000;
            take_median(state, team, 101, [&] { return (team.run(kMeetings) - team.run(0)) / kMeetings; });
        });
        for (const auto& [state_name, pause] : {std::pair{"spinning", 20}, {"sleeping", 3000}}) {
            add(std::string("team/run_") + state_name + threads, [n, executor, pause = pause](benchmark::State& state) {
                BenchTeam team(n, executor);
                take_median(state, team, 301, [&] {
                    const double until = host::seconds_now() + pause * 1e-6;
                    while (host::seconds_now() < until) {
                    }
                    return team.run(0);
                });
            });
        }
    }
}

}  // namespace

void add_team_suite() {
    add_teams_of("own", kOwnThreads);
    if (openmp_executor().run) add_teams_of("openmp", openmp_executor());
}

}  // namespace fovea
