// Ctrl-C while a line is waited for: no moment loses it, and no thread that it comes to.
#include "tools/terminal/interrupt.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tools/terminal/line_editor.h"

namespace fovea::testing {
namespace {

/// A standard input on which nothing comes, as long as it exists.
class SilentInput {
public:
    SilentInput() : before_(dup(STDIN_FILENO)) {
        REQUIRE(pipe(ends_) == 0);
        dup2(ends_[0], STDIN_FILENO);
    }
    ~SilentInput() {
        if (before_ >= 0) dup2(before_, STDIN_FILENO);
        for (const int end : {before_, ends_[0], ends_[1]}) close(end);
    }
    SilentInput(const SilentInput&) = delete;
    SilentInput& operator=(const SilentInput&) = delete;

    void say(const char* text, std::size_t n) const { CHECK(write(ends_[1], text, n) == static_cast<ssize_t>(n)); }

private:
    int before_, ends_[2] = {-1, -1};
};

TEST_CASE("interrupt: a line that is waited for ends by a signal that came before, or comes to another thread") {
    const SilentInput input;
    const CatchInterrupt catches;
    LineEditor editor(false);
    raise(SIGINT);
    CHECK_FALSE(editor.read(""));
    CHECK(CatchInterrupt::came());
    CHECK(CatchInterrupt::forget());
    CHECK_FALSE(CatchInterrupt::came());
    input.say("a line\n", 7);
    CHECK(editor.read("") == "a line");  // what is forgotten ends nothing
    std::thread other([] {
        usleep(50'000);
        pthread_kill(pthread_self(), SIGINT);
    });
    CHECK_FALSE(editor.read(""));
    other.join();
    CHECK(CatchInterrupt::forget());
    input.say("another\n", 8);
    CHECK(editor.read("") == "another");
}

TEST_CASE("interrupt: more signals than the pipe holds, and none once nothing catches them") {
    {
        const CatchInterrupt catches;
        for (int i = 0; i < 100'000; ++i) raise(SIGINT);
        CHECK(CatchInterrupt::forget());
        pollfd ready{CatchInterrupt::descriptor(), POLLIN, 0};
        CHECK(poll(&ready, 1, 0) == 0);
    }
    CHECK(CatchInterrupt::descriptor() == -1);
    signal(SIGINT, SIG_IGN);
    {
        const CatchInterrupt catches;
        raise(SIGINT);
        CHECK_FALSE(CatchInterrupt::came());
    }
    signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace fovea::testing
