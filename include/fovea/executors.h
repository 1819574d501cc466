// The executors that the library has, by name. docs/architecture.md says when to take which.
//
//     make_session(model, limits, arena, session, {.executor = openmp_executor()});
#pragma once
#include "fovea/workspace.h"

namespace fovea {

/// The engine's own threads, see make_session: what is taken if no executor is named.
inline constexpr Executor kOwnThreads{};

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

/// OpenMP's team, whose member 0 is the calling thread; kOwnThreads in builds without it (-D FOVEA_OPENMP=OFF).
///
/// make_session and make_workspace have OpenMP start the calling thread's team; calls from that thread, with one n_threads, start no
/// thread and allocate nothing. OpenMP starts threads in a call from another thread, and wherever n_threads is larger than in the
/// call before. Where it gives fewer than n_threads (within a parallel region, beyond OMP_THREAD_LIMIT, with OMP_DYNAMIC), those share
/// the work, with the same bits.
/// Not told by a Status: OpenMP ends the process if the system refuses it a thread. A forked child waits for ever, with GCC's
/// library, if its parent's team has run. A thread's stack is OMP_STACKSIZE, or the system's default; 256 KiB are enough.
[[nodiscard]] Executor openmp_executor() noexcept;

#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif

}  // namespace fovea
