// OpenMP's team. Its threads, their stacks, places and spinning are OpenMP's.
#include "fovea/executors.h"
#include "platform/team.h"

#if defined(FOVEA_OPENMP)
#include <omp.h>
#endif

namespace fovea {

#if defined(FOVEA_OPENMP)

namespace {

void run_on_openmp(void*, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
                   void* argument) noexcept {
    const int n = static_cast<int>(n_members);
#pragma omp parallel num_threads(n)
    work(argument, static_cast<std::uint32_t>(omp_get_thread_num()));
}

}  // namespace

Executor openmp_executor() noexcept { return {.run = run_on_openmp}; }

std::uint32_t openmp_members() noexcept { return static_cast<std::uint32_t>(omp_get_num_threads()); }

#else

Executor openmp_executor() noexcept { return kOwnThreads; }

std::uint32_t openmp_members() noexcept { return 1; }

#endif

}  // namespace fovea
