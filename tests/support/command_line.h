// The built command line as its users have it: a process with arguments, two streams and an exit status.
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/convert_fixtures.h"
#include "tools/options/opened.h"

namespace fovea::testing {

/// A golden file or folder as an argument.
inline std::string golden(const std::string& name) { return golden_path(name).string(); }

struct Ran {
    int status = -1;  ///< exit status; -1 if a signal ended it
    std::string out, err;
};

struct RunSettings {
    std::string out_path;            ///< where standard output goes; empty: into Ran::out
    bool open_input = false;         ///< standard input is a pipe that stays open and says nothing; else empty
    int input = -1, output = -1;     ///< descriptors in place of standard input and output; -1: as above
    int closed = -1;                 ///< a descriptor that it starts without, 0 to 2
    std::uint64_t memory_bytes = 0;  ///< limit of the address space; 0: none
    std::uint64_t file_bytes = 0;    ///< largest size of a file that may be written; 0: no limit
    std::vector<std::string> environment = {};  ///< NAME=VALUE, added to the environment
};

inline Ran run_fovea(const std::vector<std::string>& arguments, const RunSettings& settings = {}) {
    TemporaryFolder folder;
    const std::string out = settings.out_path.empty() ? (folder / "out").string() : settings.out_path;
    const std::string err = (folder / "err").string();
    std::vector<char*> argv{const_cast<char*>(FOVEA_CLI)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    int silent[2] = {-1, -1};
    REQUIRE(pipe(silent) == 0);

    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const int input = settings.input >= 0   ? settings.input
                          : settings.open_input ? silent[0]
                                                : open("/dev/null", O_RDONLY);
        const int output =
            settings.output >= 0 ? settings.output : open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int error = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(input, 0);
        dup2(output, 1);
        dup2(error, 2);
        if (settings.closed >= 0) close(settings.closed);
        if (settings.memory_bytes) {
            const auto most = static_cast<rlim_t>(settings.memory_bytes);
            const rlimit limit{most, most};
            setrlimit(RLIMIT_AS, &limit);
        }
        if (settings.file_bytes) {
            const auto most = static_cast<rlim_t>(settings.file_bytes);
            const rlimit limit{most, most};
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        for (const std::string& variable : settings.environment) putenv(const_cast<char*>(variable.c_str()));
        execv(FOVEA_CLI, argv.data());
        _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    close(silent[0]);
    close(silent[1]);
    Ran ran;
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (settings.out_path.empty() && settings.output < 0) ran.out = read_text(out);
    ran.err = read_text(err);
    return ran;
}

/// Checks that a command fails by the contract: this status, only one line on standard error, and these words in it.
inline void check_refused(const std::vector<std::string>& arguments, int status, const std::string& words,
                          const RunSettings& settings = {}) {
    std::string command;
    for (const std::string& argument : arguments) command += " " + argument;
    CAPTURE(command);
    const Ran ran = run_fovea(arguments, settings);
    CAPTURE(ran.err);
    CHECK(ran.status == status);
    CHECK(ran.out == "");
    CHECK(ran.err.starts_with("fovea: "));
    CHECK(ran.err.find('\n') == ran.err.size() - 1);
    CHECK(contains(ran.err, words));
}

/// With arguments that have no spaces.
inline Ran run_words(const std::string& words) {
    std::vector<std::string> arguments;
    std::istringstream stream(words);
    for (std::string word; stream >> word;) arguments.push_back(word);
    return run_fovea(arguments);
}

/// The output of a command that succeeds.
inline std::string output_of(const std::vector<std::string>& arguments) {
    const Ran ran = run_fovea(arguments);
    CAPTURE(ran.err);
    CHECK(ran.status == 0);
    return ran.out;
}

/// The built-in model as a file of its own.
struct DemoFile {
    TemporaryFolder folder;
    std::string path = (folder / "demo.fovea").string();

    DemoFile() {
        const auto bytes = demo_model_bytes();
        write_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
};

/// The path of a reference model, or nothing if it is absent: then the caller skips, which on a build server fails.
inline std::optional<fs::path> reference_model(const char* name) {
    const fs::path path = fs::path(FOVEA_SOURCE_DIR) / "../shared/models" / name;
    if (fs::exists(path)) return path;
    const char* ci = std::getenv("CI");
    CHECK_MESSAGE((!ci || !*ci), "no reference model at ", path.string());
    MESSAGE("skipped: no reference model at ", path.string());
    return std::nullopt;
}

}  // namespace fovea::testing
