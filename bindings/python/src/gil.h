// The GIL given back and taken again, on threads that may outlive Python.
#pragma once
#include <Python.h>

namespace fovea::python {

// Where Python is ending, a thread that asks for the GIL is ended by pthread_exit, until Python 3.13. That unwinds the stack,
// and a frame that may not be unwound ends the process. Here such a thread stays instead until the process is gone, as it
// does in Python from 3.14 on.

/// PyEval_RestoreThread.
void take_gil(PyThreadState* state) noexcept;
/// PyGILState_Ensure.
[[nodiscard]] PyGILState_STATE take_gil() noexcept;

/// No GIL while it lives.
class WithoutGil {
public:
    WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;
    ~WithoutGil() { take_gil(state_); }

private:
    PyThreadState* state_;
};

/// The GIL while it lives, on any thread.
class WithGil {
public:
    WithGil() noexcept : state_(take_gil()) {}
    WithGil(const WithGil&) = delete;
    WithGil& operator=(const WithGil&) = delete;
    ~WithGil() { PyGILState_Release(state_); }

private:
    PyGILState_STATE state_;
};

}  // namespace fovea::python
