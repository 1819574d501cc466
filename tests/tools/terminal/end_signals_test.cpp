// What ends the command line: a mapped file that is cut, and signals to the first process of a container.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "tests/support/command_line.h"
#include "tests/support/sanitized.h"

namespace fovea::testing {
namespace {

#if defined(__linux__) && !defined(FOVEA_EMULATED)

/// A batch's requests come from a pipe with a name, which is opened once the model is.
struct WaitingBatch {
    DemoFile demo;
    std::string requests = (demo.folder / "requests").string();
    std::vector<std::string> arguments{"run", demo.path, "--batch", requests, "-n", "4", "--quiet"};

    WaitingBatch() { REQUIRE(mkfifo(requests.c_str(), 0600) == 0); }
};

TEST_CASE("end signals: a file that is cut while it is mapped is named in one line") {
    if (kSanitized) return;  // which handles SIGBUS itself
    const WaitingBatch batch;
    Ran ran;
    std::thread running([&] { ran = run_fovea(batch.arguments); });
    const int requests = open(batch.requests.c_str(), O_WRONLY);
    fs::resize_file(batch.demo.path, 4096);
    const std::string request = "{\"prompt\": \"lights off\"}\n";
    CHECK(write(requests, request.data(), request.size()) == static_cast<ssize_t>(request.size()));
    close(requests);
    running.join();
    CHECK(ran.status == 1);
    CHECK(ran.err == "fovea: " + fs::canonical(batch.demo.path).string() +
                         ": expected the bytes that it had when it was opened, got fewer, or a disk that cannot be "
                         "read\n");
}

/// Exit status of a batch that is the first process of its namespace and is sent a signal as it waits; 255: not allowed here.
int status_of_first_process(const WaitingBatch& batch, int signal) {
    const pid_t outside = fork();
    REQUIRE(outside >= 0);
    if (outside == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(255);
        const pid_t first = fork();
        if (first < 0) _exit(255);
        if (first == 0) {
            std::vector<char*> argv{const_cast<char*>(FOVEA_CLI)};
            for (const std::string& argument : batch.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
            argv.push_back(nullptr);
            execv(FOVEA_CLI, argv.data());
            _exit(254);
        }
        const int requests = open(batch.requests.c_str(), O_WRONLY);
        kill(first, signal);
        int status = 0;
        for (int n = 0; n < 500 && waitpid(first, &status, WNOHANG) == 0; ++n)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        kill(first, SIGKILL);
        close(requests);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 253);
    }
    int status = 0;
    REQUIRE(waitpid(outside, &status, 0) == outside);
    return WEXITSTATUS(status);
}

TEST_CASE("end signals: the first process of a container is ended by what ends others") {
    const WaitingBatch batch;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        const int status = status_of_first_process(batch, signal);
        if (status == 255) {
            MESSAGE("skipped: no namespaces of processes here");
            return;
        }
        CHECK(status == 128 + signal);
    }
}

#endif

}  // namespace
}  // namespace fovea::testing
