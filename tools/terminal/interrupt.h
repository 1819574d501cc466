// Ctrl-C that ends the program's present work and not the program; and signals that end the program after its work is
// saved.
#pragma once
#include <signal.h>
#include <atomic>

namespace fovea {

/// Catches Ctrl-C, a terminal that is closed (SIGHUP) and SIGTERM as long as it exists; one at a time. A signal that is ignored,
/// as behind `nohup`, stays ignored.
class CatchInterrupt {
public:
    CatchInterrupt();
    ~CatchInterrupt();
    CatchInterrupt(const CatchInterrupt&) = delete;
    CatchInterrupt& operator=(const CatchInterrupt&) = delete;

    /// Whether one came since the last forget().
    static const std::atomic<bool>& came();
    /// The signal that is to end the program; 0: none came. It is not forgotten.
    static int ends();
    /// Whether one came, and is forgotten.
    static bool forget();
    /// A descriptor that becomes readable when the signal comes. Poll it too, for a signal that comes just before poll,
    /// or to another thread, does not end the wait by itself. -1, which poll leaves out, if nothing catches it.
    static int descriptor();

private:
    static constexpr int kSignals[] = {SIGINT, SIGHUP, SIGTERM};
    struct sigaction before_[3]{};
};

}  // namespace fovea
