#include "tools/terminal/interrupt.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <iterator>

namespace fovea {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> end_signal{0};
int pipe_ends[2] = {-1, -1};  // a byte in it for each signal; a full one says as much

}  // namespace

CatchInterrupt::CatchInterrupt() {
    if (pipe(pipe_ends) == 0) {
        for (const int end : pipe_ends) {
            fcntl(end, F_SETFL, O_NONBLOCK);
            fcntl(end, F_SETFD, FD_CLOEXEC);
        }
    }
    struct sigaction action {};
    action.sa_handler = [](int signal) {
        const int kept = errno;
        if (signal != SIGINT) end_signal.store(signal);
        interrupted.store(true);
        (void)!write(pipe_ends[1], "", 1);
        errno = kept;
    };
    action.sa_flags = SA_RESTART;  // restart interrupted writes
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
        sigaction(kSignals[i], nullptr, &before_[i]);
        if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
}

CatchInterrupt::~CatchInterrupt() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    end_signal.store(0);
    for (int& end : pipe_ends) {
        if (end >= 0) close(end);
        end = -1;
    }
}

const std::atomic<bool>& CatchInterrupt::came() { return interrupted; }

int CatchInterrupt::ends() { return end_signal; }

bool CatchInterrupt::forget() {
    char bytes[64];
    while (pipe_ends[0] >= 0 && read(pipe_ends[0], bytes, sizeof bytes) > 0) {
    }
    return interrupted.exchange(false);
}

int CatchInterrupt::descriptor() { return pipe_ends[0]; }

}  // namespace fovea
