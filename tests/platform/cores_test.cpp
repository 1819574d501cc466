// Which cores a team is worth having on.
#include <doctest/doctest.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "platform/team.h"
#include "tests/platform/temporary_directory.h"

namespace {

using namespace fovea;

#if defined(__linux__)
TEST_CASE("fast_cores: at least one, and no more than this thread may use") {
    cpu_set_t saved;
    REQUIRE(sched_getaffinity(0, sizeof saved, &saved) == 0);
    CHECK(fast_cores() >= 1);
    CHECK(fast_cores() <= static_cast<std::uint32_t>(CPU_COUNT(&saved)));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); ++cpu)
        if (CPU_ISSET(cpu, &saved)) CPU_SET(cpu, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(fast_cores() == 1);
    REQUIRE(sched_setaffinity(0, sizeof saved, &saved) == 0);
}

TEST_CASE("take_cpu: a thread leaves a CPU that is taken, and may use what it might before") {
    cpu_set_t before;
    REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
    constexpr int kTries = 20;
    int n_moved = 0;  // in spite of a system that moves it back at times
    for (int i = 0; i < kTries; ++i) {
        TakenCpus taken;
        take_cpu(taken);
        const int cpu = sched_getcpu();
        take_cpu(taken);
        n_moved += sched_getcpu() != cpu;
        cpu_set_t after;
        REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
        CHECK(CPU_EQUAL(&after, &before));
    }
    if (CPU_COUNT(&before) > 1)
        CHECK(n_moved > kTries / 2);
    else
        CHECK(n_moved == 0);
}

TEST_CASE("fast_cores: of big and little cores the big ones, one thread of each, within the quota") {
    const TemporaryDirectory root;
    const auto write = [&](const std::string& path, const std::string& text) {
        const std::filesystem::path full = root.path / path;
        std::filesystem::create_directories(full.parent_path());
        std::ofstream(full) << text << "\n";
    };
    cpu_set_t mask;
    REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
    std::vector<std::string> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &mask)) cpus.push_back(std::to_string(cpu));
    const auto n = static_cast<std::uint32_t>(cpus.size());
    const std::string sys = root.path.string(), cpu = "sys/devices/system/cpu/cpu";
    CHECK(fast_cores(sys.c_str()) == n);  // nothing to be read: all

    for (std::size_t i = 0; i < n; ++i) write(cpu + cpus[i] + "/cpu_capacity", "1024");
    CHECK(fast_cores(sys.c_str()) == n);
    write("sys/fs/cgroup/cpu.max", "max 100000");
    CHECK(fast_cores(sys.c_str()) == n);
    write("sys/fs/cgroup/cpu.max", "50000 100000");
    CHECK(fast_cores(sys.c_str()) == 1);
    std::filesystem::remove(root.path / "sys/fs/cgroup/cpu.max");
    if (n < 2) {
        MESSAGE("one CPU: nothing said of several");
        return;
    }

    write(cpu + cpus[0] + "/cpu_capacity", "446");  // a Cortex-A53 beside A73s
    CHECK(fast_cores(sys.c_str()) == n - 1);
    write(cpu + cpus[0] + "/cpu_capacity", "1024");
    for (const int i : {0, 1}) write(cpu + cpus[i] + "/topology/thread_siblings_list", cpus[0] + "," + cpus[1]);
    CHECK(fast_cores(sys.c_str()) == n - 1);
    write("sys/devices/cpu_core/cpus", cpus[1]);  // x86: the performance cores
    CHECK(fast_cores(sys.c_str()) == 1);
}

TEST_CASE("cpu_quota: the least of a group's quotas and of those above it, of both versions") {
    const TemporaryDirectory root;
    const std::string top = root.path.string();
    const auto write = [&](const std::string& path, const std::string& text) {
        const std::filesystem::path full = root.path / path;
        std::filesystem::create_directories(full.parent_path());
        std::ofstream(full) << text << "\n";
    };
    const std::string groups = "sys/fs/cgroup", nested = groups + "/a.slice/b.service";
    CHECK(cpu_quota(top.c_str()) == 0);
    write("proc/self/cgroup", "0::/a.slice/b.service");
    write(nested + "/cpu.max", "max 100000");
    CHECK(cpu_quota(top.c_str()) == 0);
    write(nested + "/cpu.max", "250000 100000");
    CHECK(cpu_quota(top.c_str()) == 3);
    write(groups + "/a.slice/cpu.max", "200000 100000");  // Slurm's job around its steps
    CHECK(cpu_quota(top.c_str()) == 2);
    write(groups + "/cpu.max", "400000 100000");
    CHECK(cpu_quota(top.c_str()) == 2);
    write(groups + "/other/cpu.max", "1000 100000");  // somebody else's
    CHECK(cpu_quota(top.c_str()) == 2);
    write(groups + "/cpu.max", "50000 100000");  // a container's own
    CHECK(cpu_quota(top.c_str()) == 1);
    std::filesystem::remove_all(root.path / "sys");

    write("proc/self/cgroup", "12:cpuset:/c\n4:cpuacct,cpu:/docker/" + std::string(64, 'e') + "\n0::/");
    write(groups + "/cpu/cpu.cfs_quota_us", "-1");
    write(groups + "/cpu/cpu.cfs_period_us", "100000");
    CHECK(cpu_quota(top.c_str()) == 0);
    const std::string own = groups + "/cpu/docker/" + std::string(64, 'e');
    write(own + "/cpu.cfs_quota_us", "150000");
    write(own + "/cpu.cfs_period_us", "50000");
    CHECK(cpu_quota(top.c_str()) == 3);
    write(groups + "/cpu/cpu.cfs_quota_us", "100000");
    CHECK(cpu_quota(top.c_str()) == 1);
    for (const char* text : {"", ":", "::", "0::", "0:cpu", "1:cpu:a//b/", "x\n\n:cpu,:/..", "0::/a/../.."}) {
        write("proc/self/cgroup", text);
        CHECK(cpu_quota(top.c_str()) == 1);
    }
}
#endif

}  // namespace
