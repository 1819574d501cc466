#include "team.h"

#if defined(__linux__)
#include <fcntl.h>
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace fovea {

#if defined(__linux__)

namespace {

constexpr std::size_t kMaxPath = 256;

/// Copies `text` to `end` as long as the path that `end` is in, which starts at `path`, has room; its new end.
char* append(char* path, char* end, const char* text) noexcept {
    while (*text && end < path + kMaxPath - 1) *end++ = *text++;
    *end = 0;
    return end;
}

/// Reads a small text file of the kernel's; false where there is none.
struct KernelText {
    const char* root;  // what the paths start with: nothing, but for tests
    char text[256] = {};
    const char* at = text;

    bool read_from(const char* path) noexcept {
        char full[kMaxPath];
        append(full, append(full, full, root), path);
        const int file = open(full, O_RDONLY | O_CLOEXEC);
        if (file < 0) return false;
        const ssize_t n = read(file, text, sizeof text - 1);
        close(file);
        text[n > 0 ? n : 0] = 0;
        at = text;
        return n > 0;
    }

    /// The next number, stepping over what comes before it; false where there is no further one.
    bool number(std::uint64_t& value) noexcept {
        while (*at && (*at < '0' || *at > '9')) ++at;
        if (!*at) return false;
        for (value = 0; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<std::uint64_t>(*at - '0');
        return true;
    }

    /// The next "first" or "first-last" of a list of CPUs such as "0-3,8".
    bool range(std::uint64_t& first, std::uint64_t& last) noexcept {
        if (!number(first)) return false;
        last = first;
        if (*at == '-') number(last);
        return true;
    }
};

/// Reads /sys/devices/system/cpu/cpu<i>/<name>.
bool read_cpu(KernelText& file, int cpu, const char* name) noexcept {
    char path[kMaxPath];
    char* end = append(path, path, "/sys/devices/system/cpu/cpu");
    for (int unit = cpu >= 1000 ? 1000 : cpu >= 100 ? 100 : cpu >= 10 ? 10 : 1; unit; unit /= 10)
        *end++ = static_cast<char>('0' + cpu / unit % 10);
    append(path, append(path, end, "/"), name);
    return file.read_from(path);
}

/// Leaves in `mask` only the fastest kind of CPU, where the kernel tells kinds apart.
void keep_fastest(const char* root, cpu_set_t& mask) noexcept {
    KernelText file{root};
    std::uint64_t first, last;
    if (file.read_from("/sys/devices/cpu_core/cpus")) {  // x86 with two kinds: these are the performance cores
        cpu_set_t fast;
        CPU_ZERO(&fast);
        while (file.range(first, last))
            for (std::uint64_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu)
                CPU_SET(static_cast<int>(cpu), &fast);
        CPU_AND(&fast, &fast, &mask);
        if (CPU_COUNT(&fast)) mask = fast;
        return;
    }
    std::uint64_t capacity[CPU_SETSIZE] = {}, highest = 0;  // ARM's big and little cores
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &mask) || !read_cpu(file, cpu, "cpu_capacity") || !file.number(capacity[cpu])) continue;
        if (capacity[cpu] > highest) highest = capacity[cpu];
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (capacity[cpu] < highest) CPU_CLR(cpu, &mask);
}

/// Leaves in `mask` one CPU of each core: two hyperthreads share the arithmetic that we fill.
void keep_one_per_core(const char* root, cpu_set_t& mask) noexcept {
    KernelText file{root};
    std::uint64_t first, last;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &mask) || !read_cpu(file, cpu, "topology/thread_siblings_list")) continue;
        while (file.range(first, last))
            for (std::uint64_t sibling = first; sibling <= last && sibling < CPU_SETSIZE; ++sibling)
                if (sibling != static_cast<std::uint64_t>(cpu)) CPU_CLR(static_cast<int>(sibling), &mask);
    }
}

/// The CPUs' worth of time that a container's quota allows, rounded up; 0 where there is none.
std::uint64_t quota(const char* root) noexcept {
    KernelText file{root};
    std::uint64_t budget, period;
    if (!file.read_from("/sys/fs/cgroup/cpu.max") || file.text[0] == 'm') return 0;  // "max 100000": no quota
    if (!file.number(budget) || !file.number(period) || period == 0) return 0;
    return (budget + period - 1) / period;
}

}  // namespace

std::uint32_t fast_cores(const char* root) noexcept {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) {  // more CPUs than a cpu_set_t holds
        const long n = sysconf(_SC_NPROCESSORS_ONLN);
        return n > 0 ? static_cast<std::uint32_t>(n) : 1;
    }
    keep_fastest(root, mask);
    keep_one_per_core(root, mask);
    const auto n = static_cast<std::uint64_t>(CPU_COUNT(&mask)), allowed = quota(root);
    const std::uint64_t cores = allowed && allowed < n ? allowed : n;
    return cores ? static_cast<std::uint32_t>(cores) : 1;
}

#elif defined(__unix__) || defined(__APPLE__)

std::uint32_t fast_cores(const char*) noexcept {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? static_cast<std::uint32_t>(n) : 1;
}

#else

std::uint32_t fast_cores(const char*) noexcept { return 1; }

#endif

}  // namespace fovea
