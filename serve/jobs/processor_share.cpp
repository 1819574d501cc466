#include "serve/jobs/processor_share.h"

#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace fovea::serve {

void work_behind_others() noexcept {
#if defined(__linux__)
    (void)!::nice(10);  // of this thread alone
#endif
}

void ask_for_slices(std::chrono::microseconds time) noexcept {
#if defined(__linux__) && defined(SYS_sched_setattr)
    struct {  // sched_attr, as its first version has it
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime, deadline, period;
    } wish{};
    static_assert(sizeof wish == 48);
    constexpr std::uint64_t kKeepPolicy = 8;
    wish.size = sizeof wish;
    wish.flags = kKeepPolicy;
    wish.nice = ::getpriority(PRIO_PROCESS, 0);
    wish.runtime = static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());  // a slice since Linux 6.12
    (void)::syscall(SYS_sched_setattr, 0, &wish, 0);
#else
    (void)time;
#endif
}

}  // namespace fovea::serve
