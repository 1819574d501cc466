// Passes without the GIL, which Ctrl-C and cancel() end.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

#include "bindings/python/src/errors.h"
#include "bindings/python/src/gil.h"
#include "fovea/status.h"

namespace fovea::python {

namespace nb = nanobind;

/// While it lives on the main thread, SIGINT also sets `flag`, before what was to happen happens. Elsewhere, and where
/// the signal is ignored or ends the process, it does nothing: KeyboardInterrupt is the main thread's alone. The handler
/// stays, in front of Python's, for a call of the system each way would take longer than the rest of a small call.
class SetByInterrupt {
public:
    explicit SetByInterrupt(std::atomic<bool>& flag) noexcept;
    SetByInterrupt(const SetByInterrupt&) = delete;
    SetByInterrupt& operator=(const SetByInterrupt&) = delete;
    ~SetByInterrupt();

private:
    bool caught_ = false;
};

/// Long work on texts, on a thread without the GIL: raises where a signal's handler in Python does. Asks seldom, for the GIL may
/// be somebody else's for a while.
class InterruptibleWork {
public:
    /// The next text has so many bytes.
    void next(std::size_t n_bytes) {
        constexpr std::size_t kBetween = 64 << 10;
        if ((n_bytes_ += n_bytes) < kBetween) return;
        n_bytes_ = 0;
        const WithGil held;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }

private:
    std::size_t n_bytes_ = 0;
};

/// One at a time: the passes of a session or a workspace, and what ends them.
class PassGate {
public:
    /// The flag that set_cancel takes; it lives as long as this.
    [[nodiscard]] const std::atomic<bool>* flag() const noexcept { return &flag_; }

    /// Ends the pass that runs, or the next one. Any thread.
    void cancel() noexcept {
        asked_ = true;
        flag_ = true;
    }

    /// Runs `pass` without the GIL, after those of other threads, and returns its status. Where a signal's handler in
    /// Python raises, so does this; where it does not, the pass is run again, for a cancelled one has changed nothing.
    template<class Pass>
    Status run(Pass&& pass) {
        for (;;) {
            Status status;
            {
                const WithoutGil released;
                const std::lock_guard lock(mutex_);
                const SetByInterrupt interrupt(flag_);
                status = pass();
                if (status.code == Code::cancelled) flag_ = false;
            }
            if (status.code != Code::cancelled || asked_.exchange(false)) return status;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
    }

    /// Something short that must not meet a pass. Other threads' passes are waited for without the GIL.
    template<class Work>
    auto alone(Work&& work) {
        const WithoutGil released;
        const std::lock_guard lock(mutex_);
        return work();
    }

private:
    std::mutex mutex_;
    std::atomic<bool> flag_{false}, asked_{false};
};

}  // namespace fovea::python
