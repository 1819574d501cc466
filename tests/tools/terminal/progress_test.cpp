// What a person at a terminal is told: how far long work is, and what a mistyped name may have meant.
#include "tools/terminal/progress.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "host/base/nearest.h"

namespace fovea::testing {
namespace {

/// Standard error for as long as it lives: a terminal, or a file that is none.
class StandardError {
public:
    explicit StandardError(int fd) {
        std::fflush(stderr);
        dup2(fd, STDERR_FILENO);
    }
    StandardError(const StandardError&) = delete;
    StandardError& operator=(const StandardError&) = delete;
    ~StandardError() {
        std::fflush(stderr);
        dup2(before_, STDERR_FILENO);
        close(before_);
    }

private:
    int before_ = dup(STDERR_FILENO);
};

TEST_CASE("progress is one line of a terminal, once it has taken a while") {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
        MESSAGE("skipped: no terminals here");
        return;
    }
    const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    REQUIRE(end >= 0);
    {
        const StandardError error(end);
        const Progress progress = progress_line("writing a\nb");
        REQUIRE(progress);
        progress(1, 100);  // at once: not shown
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        for (const std::uint64_t done : {50, 50, 100}) progress(done, 100);
    }
    // A terminal hands on what was written in pieces, in its own time.
    std::string text;
    pollfd ready{.fd = terminal, .events = POLLIN, .revents = 0};
    while (!text.ends_with('\n') && poll(&ready, 1, 10'000) > 0) {
        char piece[200];
        const ssize_t n = read(terminal, piece, sizeof piece);
        REQUIRE(n > 0);
        text.append(piece, static_cast<std::size_t>(n));
    }
    CHECK(text == "\rwriting a?b:  50 %\rwriting a?b: 100 %\r\n");  // as a terminal ends lines
    close(end);
    close(terminal);
}

TEST_CASE("progress is not shown where nobody looks") {
    const int nowhere = open("/dev/null", O_WRONLY);
    REQUIRE(nowhere >= 0);
    const StandardError error(nowhere);
    CHECK_FALSE(progress_line("writing"));
    close(nowhere);
}

TEST_CASE("the nearest name is the one with the fewest letters wrong, if few are") {
    const std::vector<std::string> names = {"run", "convert", "plan", "certify", "--temp", "--top-k", "--top-p"};
    CHECK(nearest("runn", names) == "run");
    CHECK(nearest("rnu", names) == "run");
    CHECK(nearest("convret", names) == "convert");
    CHECK(nearest("certifyy", names) == "certify");
    CHECK(nearest("--tmep", names) == "--temp");
    CHECK(nearest("--topk", names) == "--top-k");
    CHECK(nearest("-top-p", names) == "--top-p");
    CHECK(nearest("sing", names) == "");
    CHECK(nearest("pull", names) == "");
    CHECK(nearest("", names) == "");
    CHECK(nearest("run", {}) == "");
    CHECK(nearest(std::string(1 << 20, 'r'), names) == "");
}

}  // namespace
}  // namespace fovea::testing
