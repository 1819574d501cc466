#include "interrupt.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

namespace fovea {
namespace {

std::atomic<bool> interrupted{false};
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
    action.sa_handler = [](int) {
        const int kept = errno;
        interrupted.store(true);
        (void)!write(pipe_ends[1], "", 1);
        errno = kept;
    };
    action.sa_flags = SA_RESTART;  // what is being written goes on
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, nullptr, &before_);
    if (before_.sa_handler != SIG_IGN) sigaction(SIGINT, &action, nullptr);
}

CatchInterrupt::~CatchInterrupt() {
    sigaction(SIGINT, &before_, nullptr);
    for (int& end : pipe_ends) {
        if (end >= 0) close(end);
        end = -1;
    }
}

const std::atomic<bool>& CatchInterrupt::came() { return interrupted; }

bool CatchInterrupt::forget() {
    char bytes[64];
    while (pipe_ends[0] >= 0 && read(pipe_ends[0], bytes, sizeof bytes) > 0) {
    }
    return interrupted.exchange(false);
}

int CatchInterrupt::descriptor() { return pipe_ends[0]; }

}  // namespace fovea
