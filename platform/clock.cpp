#include "clock.h"

#if defined(__unix__) || defined(__APPLE__)
#include <time.h>

namespace fovea {

std::uint64_t clock_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace fovea
#endif
