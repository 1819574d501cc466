#include "bindings/python/src/gil.h"

#include <pthread.h>
#include <unistd.h>

// With exceptions glibc's pthread_cleanup_push is an object whose destructor unwinding calls: too late for us.
#if defined(__EXCEPTIONS)
#error "compile gil.cpp with -fno-exceptions"
#endif

namespace fovea::python {
namespace {

/// What pthread_exit calls before it unwinds further.
void stay(void*) {
    for (;;) pause();
}

}  // namespace

void take_gil(PyThreadState* state) noexcept {
    pthread_cleanup_push(stay, nullptr);
    PyEval_RestoreThread(state);
    pthread_cleanup_pop(0);
}

PyGILState_STATE take_gil() noexcept {
    PyGILState_STATE state;
    pthread_cleanup_push(stay, nullptr);
    state = PyGILState_Ensure();
    pthread_cleanup_pop(0);
    return state;
}

}  // namespace fovea::python
