#include "bindings/python/src/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace fovea::python {
namespace {

// What the handler below may read. One main thread has one pass at a time.
std::atomic<std::atomic<bool>*> to_set{nullptr};
struct sigaction before {};

/// Whether this is the main thread: asked once a thread, and again by a forked child, whose only thread becomes it.
thread_local int is_main = -1;

bool on_main_thread() noexcept {
    static const int forgets = pthread_atfork(nullptr, nullptr, [] { is_main = -1; });
    if (is_main < 0 || forgets != 0)
#if defined(__linux__)
        is_main = syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
        is_main = pthread_main_np() != 0;
#else
        is_main = 0;
#endif
    return is_main != 0;
}

extern "C" void set_and_go_on(int signal, siginfo_t* info, void* context) {
    if (std::atomic<bool>* flag = to_set.load()) flag->store(true);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal, info, context);
    else
        before.sa_handler(signal);
}

}  // namespace

SetByInterrupt::SetByInterrupt(std::atomic<bool>& flag) noexcept {
    if (!on_main_thread()) return;
    struct sigaction now {};
    if (sigaction(SIGINT, nullptr, &now) != 0) return;
    const bool is_ours = (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == set_and_go_on;
    if (!is_ours) {  // the first time, or somebody has set another since
        const bool has_handler =
            (now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
        if (!has_handler) return;
        before = now;
        struct sigaction ours {};
        ours.sa_sigaction = set_and_go_on;
        ours.sa_mask = now.sa_mask;
        ours.sa_flags = (now.sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
        if (sigaction(SIGINT, &ours, nullptr) != 0) return;
    }
    to_set = &flag;
    caught_ = true;
}

SetByInterrupt::~SetByInterrupt() {
    if (caught_) to_set = nullptr;
}

}  // namespace fovea::python
