// fovea: the command line. Results go to standard output, everything else to standard error. Exit status 0; 2 for a
// usage error and 1 for any other, each with exactly one line on standard error.
#include <fcntl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "host/base/error.h"
#include "host/base/unfinished.h"
#include "host/base/words.h"
#include "tools/options/command_line.h"
#include "tools/options/ranks.h"
#include "tools/terminal/end_signals.h"
#include "tools/verbs/verbs.h"

// No catch is reached where memory ends before main, while CLI11 makes its globals: so it is said here. A priority of
// its own puts this before them.
[[gnu::constructor(101)]] static void say_what_ends_us() {
    std::set_terminate([] {
        constexpr char kLine[] = "fovea: out of memory\n";
        try {
            if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
        } catch (const std::bad_alloc&) {
            fovea::remove_unfinished_files();
            std::fputs(kLine, stderr);
            std::_Exit(1);
        } catch (...) {
        }
        std::abort();
    });
}

/// Descriptors 0 to 2 where a caller closed them: else the next file that is opened is one of these, and messages go into it.
/// Reading from the first fails as before, and so does writing to the others.
static void keep_standard_descriptors() {
    for (int fd = 0; fd <= 2; ++fd)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);  // the lowest that is free: fd
}

/// The one line of an error, by the first of several ranks.
static int fail(const std::string& line, int status) {
    std::fflush(stdout);
    const fovea::Ranks* ranks = fovea::joined_ranks();
    if (!ranks || ranks->rank == 0) std::fprintf(stderr, "fovea: %s\n", line.c_str());
    fovea::end_ranks(line, status);
    return status;
}

int main(int argc, char** argv) {
    keep_standard_descriptors();
    fovea::heed_end_signals();
    std::signal(SIGXFSZ, SIG_IGN);  // a file that becomes too large is then an error of writing it
    // A buffer of our own: stdio would allocate one at the first write, in the middle of a generation.
    static char buffer[1 << 16];
    std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    try {
        fovea::join_ranks();
        const int status = fovea::run_command_line(argc, argv, fovea::kVerbs);
        fovea::leave_ranks();
        return status;
    } catch (const fovea::host::Error& error) {
        return fail(error.what(), dynamic_cast<const fovea::host::ArgumentError*>(&error) ? 2 : 1);
    } catch (const std::bad_alloc&) {
        return fail("out of memory", 1);
    } catch (const std::exception& error) {
        return fail(fovea::one_line(error.what()), 1);
    }
}
