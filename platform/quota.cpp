// The time that control groups allow a process. Source: Linux's admin-guide/cgroup-v2.rst (cpu.max) and
// scheduler/sched-bwc.rst (cpu.cfs_quota_us and cpu.cfs_period_us of version 1).
#include "platform/team.h"

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>

#include <string_view>

namespace fovea {
namespace {

/// A path, put together. One that is too long is no file's.
struct GroupPath {
    char text[4096] = {};
    std::size_t n = 0;

    void add(std::string_view more) noexcept {
        for (const char c : more)
            if (n < sizeof text - 1) text[n++] = c;
        text[n] = 0;
    }
    void cut(std::size_t length) noexcept { text[n = length] = 0; }
};

/// The beginning of a file, which ends with a zero; a missing one is empty.
template<std::size_t kBytes>
void read_beginning(const char* path, char (&text)[kBytes]) noexcept {
    text[0] = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t n = read(file, text, kBytes - 1);
    text[n > 0 ? n : 0] = 0;
    close(file);
}

/// A whole number at `at`, behind spaces, and whether there is one: no "max" and no "-1".
bool take_number(const char*& at, std::uint64_t& value) noexcept {
    while (*at == ' ') ++at;
    const char* const begin = at;
    for (value = 0; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<std::uint64_t>(*at - '0');
    return at != begin;
}

/// Takes what stands before the first `end` off a text, and that; all of it where there is none.
std::string_view take_until(std::string_view& text, char end) noexcept {
    std::size_t n = 0;
    while (n < text.size() && text[n] != end) ++n;
    const std::string_view before(text.data(), n);
    text.remove_prefix(n < text.size() ? n + 1 : n);
    return before;
}

struct Quota {
    const char* root;
    std::uint64_t least = 0;  // CPUs; 0: no quota so far

    void take(std::uint64_t budget, std::uint64_t period) noexcept {
        if (!budget || !period) return;
        const std::uint64_t cpus = (budget + period - 1) / period;
        if (!least || cpus < least) least = cpus;
    }
    [[nodiscard]] bool number_in(GroupPath path, const char* name, std::uint64_t& value) const noexcept {
        char text[64];
        path.add(name);
        read_beginning(path.text, text);
        const char* at = text;
        return take_number(at, value);
    }
    /// The quota of the group whose folder that is.
    void take_group(GroupPath path) noexcept {
        std::uint64_t budget = 0, period = 0;
        if (number_in(path, "/cpu.cfs_quota_us", budget) && number_in(path, "/cpu.cfs_period_us", period))
            take(budget, period);
        char text[64];
        path.add("/cpu.max");
        read_beginning(path.text, text);
        const char* at = text;
        if (take_number(at, budget) && take_number(at, period)) take(budget, period);
    }
    /// Those of a group and of all above it, in the hierarchy that is mounted there.
    void take_groups(std::string_view mount, std::string_view group) noexcept {
        GroupPath path;
        path.add(root);
        path.add("/sys/fs/cgroup");
        path.add(mount);
        const std::size_t top = path.n;
        path.add(group);
        for (;;) {
            take_group(path);
            if (path.n <= top) return;
            while (path.n > top && path.text[path.n - 1] != '/') path.cut(path.n - 1);
            while (path.n > top && path.text[path.n - 1] == '/') path.cut(path.n - 1);
        }
    }
    /// A line of /proc/self/cgroup, "ID:CONTROLLERS:GROUP"; version 2 has no controllers there.
    void take_line(std::string_view line) noexcept {
        (void)take_until(line, ':');
        std::string_view controllers = take_until(line, ':');
        if (controllers.empty()) return take_groups("", line);
        while (!controllers.empty())
            if (take_until(controllers, ',') == "cpu") take_groups("/cpu", line);
    }
};

}  // namespace

std::uint64_t cpu_quota(const char* root) noexcept {
    Quota quota{root};
    quota.take_groups("", "");  // a container's own group is at the top
    quota.take_groups("/cpu", "");
    GroupPath path;
    path.add(root);
    path.add("/proc/self/cgroup");
    char text[8192];
    read_beginning(path.text, text);
    for (std::string_view lines(text); !lines.empty();) quota.take_line(take_until(lines, '\n'));
    return quota.least;
}

}  // namespace fovea
#endif
