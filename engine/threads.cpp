#include "../platform/team.h"
#include "fovea/session.h"

namespace fovea {

std::uint32_t default_threads() noexcept {
#ifdef FOVEA_OPENMP
    const std::uint32_t n = fast_cores();
    return n < 1 ? 1 : n > kMaxThreads ? kMaxThreads : n;
#else
    return 1;  // start_team has no more to give
#endif
}

}  // namespace fovea
