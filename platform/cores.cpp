#include "platform/team.h"

#include <cstddef>

#if defined(__linux__)
#include <fcntl.h>
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

namespace fovea {
namespace {

/// If there is no more to go by.
std::uint32_t online() noexcept {
#if defined(__unix__) || defined(__APPLE__)
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? static_cast<std::uint32_t>(n) : 1;
#elif defined(_WIN32)
    const DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n > 0 ? static_cast<std::uint32_t>(n) : 1;
#else
    return 1;
#endif
}

#if defined(__linux__)

/// A small text file of the kernel's, read number by number; a missing file has no numbers. `root` is put before all
/// paths, and is empty except in tests; a '#' in `path` stands for the number of `cpu`.
struct KernelText {
    char text[256] = {};
    const char* at = text;

    KernelText(const char* root, const char* path, int cpu = 0) noexcept {
        char full[256];
        std::size_t n = 0;
        const auto add = [&](char c) {
            if (n < sizeof full - 1) full[n++] = c;
        };
        while (*root) add(*root++);
        for (; *path; ++path) {
            if (*path != '#') add(*path);
            for (int unit = *path == '#' ? 1000 : 0; unit; unit /= 10)
                if (cpu >= unit || unit == 1) add(static_cast<char>('0' + cpu / unit % 10));
        }
        full[n] = 0;
        const int file = open(full, O_RDONLY | O_CLOEXEC);
        if (file < 0) return;
        const ssize_t n_read = read(file, text, sizeof text - 1);
        text[n_read > 0 ? n_read : 0] = 0;
        close(file);
    }

    /// The next number, whatever stands before it; false if there is none.
    bool number(std::uint64_t& value) noexcept {
        while (*at && (*at < '0' || *at > '9')) ++at;
        if (!*at) return false;
        for (value = 0; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<std::uint64_t>(*at - '0');
        return true;
    }

    /// The CPUs of a list such as "0-3,8".
    cpu_set_t cpus() noexcept {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (std::uint64_t first, last; number(first);) {
            last = first;
            if (*at == '-') number(last);
            for (std::uint64_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu)
                CPU_SET(static_cast<int>(cpu), &set);
        }
        return set;
    }
};

/// Leaves in `mask` only the fastest kind of CPU, if the kernel tells kinds apart.
void keep_fastest(const char* root, cpu_set_t& mask) noexcept {
    cpu_set_t fast = KernelText(root, "/sys/devices/cpu_core/cpus").cpus();  // x86 with two kinds: performance cores
    CPU_AND(&fast, &fast, &mask);
    if (CPU_COUNT(&fast)) {
        mask = fast;
        return;
    }
    std::uint64_t capacity[CPU_SETSIZE] = {}, highest = 0;  // ARM's big and little cores
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &mask))
            KernelText(root, "/sys/devices/system/cpu/cpu#/cpu_capacity", cpu).number(capacity[cpu]);
        if (capacity[cpu] > highest) highest = capacity[cpu];
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (capacity[cpu] < highest) CPU_CLR(cpu, &mask);
}

/// Leaves in `mask` one CPU of each core: two hyperthreads share the arithmetic that we fill.
void keep_one_per_core(const char* root, cpu_set_t& mask) noexcept {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &mask)) continue;
        cpu_set_t siblings = KernelText(root, "/sys/devices/system/cpu/cpu#/topology/thread_siblings_list", cpu).cpus();
        CPU_CLR(cpu, &siblings);
        CPU_AND(&siblings, &siblings, &mask);
        CPU_XOR(&mask, &mask, &siblings);
    }
}

#endif

}  // namespace

std::uint32_t usable_cpus() noexcept {
#if defined(__linux__)
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&mask));
#endif
    return online();
}

std::uint32_t fast_cores([[maybe_unused]] const char* root) noexcept {
#if defined(__linux__)
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return online();  // more CPUs than a cpu_set_t holds
    keep_fastest(root, mask);
    keep_one_per_core(root, mask);
    const auto n = static_cast<std::uint64_t>(CPU_COUNT(&mask)), allowed = cpu_quota(root);
    const std::uint64_t cores = allowed && allowed < n ? allowed : n;
    return cores ? static_cast<std::uint32_t>(cores) : 1;
#else
    return online();
#endif
}

#if defined(__linux__)

void take_cpu(TakenCpus& taken) noexcept {
    const auto is_free = [&] {  // until now
        const auto cpu = static_cast<std::uint32_t>(sched_getcpu());
        if (cpu >= TakenCpus::kMost) return true;
        const std::uint32_t bit = 1u << cpu % 32;
        return (taken.bits[cpu / 32].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
    };
    cpu_set_t allowed;
    if (is_free() || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    cpu_set_t others = allowed;
    for (std::uint32_t cpu = 0; cpu < TakenCpus::kMost; ++cpu)
        if (taken.bits[cpu / 32].load(std::memory_order_relaxed) >> cpu % 32 & 1) CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
    (void)is_free();
}

#endif

}  // namespace fovea
