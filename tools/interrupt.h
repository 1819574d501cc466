// Ctrl-C, where it ends what the program is doing and not the program.
#pragma once
#include <signal.h>
#include <atomic>

namespace fovea {

/// Catches Ctrl-C as long as it exists; one at a time. Where the signal is ignored, as behind `nohup`, it stays ignored.
class CatchInterrupt {
public:
    CatchInterrupt();
    ~CatchInterrupt();
    CatchInterrupt(const CatchInterrupt&) = delete;
    CatchInterrupt& operator=(const CatchInterrupt&) = delete;

    /// Whether it came since the last forget().
    static const std::atomic<bool>& came();
    /// Whether it came, and is forgotten.
    static bool forget();
    /// What can be read from as soon as it came, for poll: a signal that comes just before poll, or to another thread, does
    /// not end the wait itself. -1, which poll leaves out, where nothing catches it.
    static int descriptor();

private:
    struct sigaction before_ {};
};

}  // namespace fovea
