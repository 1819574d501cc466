#include "unfinished.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace fovea {
namespace {

// What a signal handler may read: no container, no lock. No command writes more files at a time.
constexpr std::size_t kSlots = 16;
std::atomic<const char*> paths[kSlots];

extern "C" void end_by_signal(int signal) {
    remove_unfinished_files();
    raise(signal);  // by SA_RESETHAND its default action again, due when this handler returns
}

void catch_signals() {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
        struct sigaction action {};
        if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
        action.sa_handler = end_by_signal;
        action.sa_flags = SA_RESETHAND;
        sigaction(signal, &action, nullptr);
    }
}

}  // namespace

void remove_unfinished_files() noexcept {
    for (const auto& path : paths)
        if (const char* name = path.load()) unlink(name);
}

Unfinished::Unfinished(std::string path) : path_(std::move(path)), slot_(0) {
    catch_signals();
    for (const char* free = nullptr; slot_ < kSlots; ++slot_, free = nullptr)
        if (paths[slot_].compare_exchange_strong(free, path_.c_str())) return;
}

Unfinished::~Unfinished() {
    unlink(path_.c_str());
    if (slot_ < kSlots) paths[slot_] = nullptr;
}

}  // namespace fovea
