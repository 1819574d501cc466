#include "tools/terminal/end_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "host/base/unfinished.h"

namespace fovea {
namespace {

// All that a handler may call: no memory is taken, nothing is buffered.

void say(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

/// The hexadecimal number at `at`, which goes behind it.
std::uintptr_t take_address(const char*& at) {
    std::uintptr_t value = 0;
    for (;; ++at) {
        const int digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : -1;
        if (digit < 0) return value;
        value = value * 16 + static_cast<std::uintptr_t>(digit);
    }
}

/// The line's path where it is the mapping of a file that has the address; else null. "begin-end rights offset device inode
/// path"
const char* mapped_path(const char* line, std::uintptr_t address) {
    const std::uintptr_t begin = take_address(line);
    if (*line != '-') return nullptr;
    const std::uintptr_t end = take_address(++line);
    return address >= begin && address < end ? std::strchr(line, '/') : nullptr;
}

/// Looks the address up as Linux lists mappings; `line` gets its line.
const char* find_mapped_path(std::uintptr_t address, char (&line)[8192]) {
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const char* path = nullptr;
    std::size_t n = 0;
    for (char byte; !path && read(maps, &byte, 1) == 1;) {
        if (byte != '\n' && n + 1 < sizeof line) line[n++] = byte;
        if (byte != '\n') continue;
        line[n] = 0;
        path = mapped_path(line, address);
        n = 0;
    }
    close(maps);
    return path;
}

extern "C" void end_by_cut_file(int, siginfo_t* info, void*) {
    static volatile sig_atomic_t said = 0;
    if (said) _exit(1);  // another thread's
    said = 1;
    static char line[8192];
    const char* path = find_mapped_path(reinterpret_cast<std::uintptr_t>(info->si_addr), line);
    if (!path) {  // another's fault, which ends the process as ever
        (void)signal(SIGBUS, SIG_DFL);
        (void)raise(SIGBUS);
        return;
    }
    say("fovea: ");
    say(path);
    say(": expected the bytes that it had when it was opened, got fewer, or a disk that cannot be read\n");
    remove_unfinished_files();
    _exit(1);
}

extern "C" void end_first_process(int signal) {
    remove_unfinished_files();
    _exit(128 + signal);
}

void handle(int signal, struct sigaction action) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
}

}  // namespace

void heed_end_signals() {
    struct sigaction bus {};
    bus.sa_sigaction = end_by_cut_file;
    bus.sa_flags = SA_SIGINFO;
    handle(SIGBUS, bus);
    if (getpid() != 1) return;
    struct sigaction end {};
    end.sa_handler = end_first_process;
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) handle(signal, end);
}

}  // namespace fovea
