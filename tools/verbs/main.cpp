// fovea: the command line. Results go to standard output, everything else to standard error. Exit status 0; 2 for a
// usage error and 1 for any other, each with exactly one line on standard error.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "fovea/version.h"
#include "host/base/error.h"
#include "host/base/nearest.h"
#include "host/base/output_file.h"
#include "host/base/unfinished.h"
#include "host/base/words.h"
#include "tools/options/ranks.h"
#include "tools/terminal/end_signals.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

constexpr char kVersion[] = "fovea " FOVEA_VERSION;

std::vector<std::string> verbs_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(verb->get_name());
    return names;
}

/// What can be typed at a place: verbs and options.
std::vector<std::string> names_at(const CLI::App& app) {
    std::vector<std::string> names = verbs_of(app);
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

/// What an option of llama.cpp or transformers is called at a place, or what can be typed there that is most like it; "" where
/// nothing is.
std::string meant_at(const CLI::App& place, std::string typed) {
    static constexpr std::pair<const char*, const char*> kOfPeers[] = {
        {"--n-predict", "-n"},      {"--predict", "-n"},
        {"--max-tokens", "-n"},     {"--max-new-tokens", "-n"},
        {"-c", "--context"},        {"--ctx-size", "--context"},
        {"-t", "--threads"},        {"--temperature", "--temp"},
        {"--cache-type-k", "--kv"}, {"--grammar-file", "--grammar"},
        {"-j", "--json-schema"},    {"-s", "--seed"}};
    typed.resize(std::min(typed.find('='), typed.size()));
    for (const auto& [name, ours] : kOfPeers)
        if (typed == name && place.get_option_no_throw(ours)) return ours;
    return nearest(typed, names_at(place));
}

/// What is said of an argument that is no option and one too many: the name of what there is one of, where there is.
std::string second_argument(const CLI::App& verb, const std::string& typed) {
    const auto is_named = [](const CLI::Option* option) { return option->get_positional(); };
    const std::vector<const CLI::Option*> named = verb.get_options(is_named);
    if (named.empty()) return "argument: expected options alone, got " + typed;
    return named.back()->get_name(true) + ": expected one, got also " + typed;
}

/// The first argument that CLI11 could not place, in our words.
std::string extra_argument(const CLI::App& app) {
    const bool at_verb = app.remaining().empty() && !app.get_subcommands().empty();
    const CLI::App& place = at_verb ? *app.get_subcommands().front() : app;
    const std::vector<std::string> extras = place.remaining();
    const std::string typed = extras.empty() ? "" : extras.front(), meant = meant_at(place, typed);
    const std::string got = ", got " + typed + (meant.empty() ? "" : "; did you mean " + meant + "?");
    if (at_verb && meant.empty() && !typed.starts_with('-')) return second_argument(place, typed);
    if (at_verb) return "argument: expected one that `fovea " + place.get_name() + " --help` lists" + got;
    if (typed.starts_with('-')) return "option: expected one that `fovea --help` lists" + got;
    return "command: expected one of " + CLI::detail::join(verbs_of(app), ", ") + got;
}

std::string missing_value(const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();  // "--top-k: 1 required N missing"
    return message.substr(0, message.find_first_of(": ")) + ": expected a value after it, got none";
}

/// The arguments as CLI11 wants them, from the last to the first, with what is customary put in its place: `help [VERB]` asks
/// for --help, and a --json before the verb belongs behind it.
std::vector<std::string> settled_arguments(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> all(argv + 1, argv + argc);
    if (!all.empty() && all[0] == "help") {
        all.erase(all.begin());
        all.resize(std::min<std::size_t>(all.size(), 1));
        const auto is_named = [&](const CLI::App* verb) { return all.empty() || verb->get_name() == all[0]; };
        if (!app.get_subcommands(is_named).empty()) all.emplace_back("--help");  // else it is refused
    } else if (all.size() > 1 && all[0] == "--json") {
        std::swap(all[0], all[1]);
    }
    std::reverse(all.begin(), all.end());
    return all;
}

int run_command_line(int argc, char** argv) {
    CLI::App app{
        "Runs attention models from one flat file on this machine's CPU, with the same bits on every CPU.\n"
        "With no model, `fovea run` shows the one that is built in."};
    app.name("fovea");
    app.require_subcommand(0, 1);  // else a file named like a verb would be one more
    app.set_version_flag("-v,--version", kVersion);
    for (AddVerb* add : kVerbs) add(app);
    try {
        app.parse(settled_arguments(app, argc, argv));
        if (app.get_subcommands().empty())
            throw UsageError("command: expected one of " + CLI::detail::join(verbs_of(app), ", ") + ", got none");
    } catch (const CLI::Success& done) {  // --help, --version
        const int status = app.exit(done);
        if (!std::cout.flush()) throw host::Error("standard output: cannot be written in full");
        return status;
    } catch (const CLI::ExtrasError&) {
        throw UsageError(extra_argument(app));
    } catch (const CLI::ArgumentMismatch& error) {
        throw UsageError(missing_value(error));
    } catch (const CLI::ParseError& error) {
        throw UsageError(error.what());
    }
    flush_output();
    return 0;
}

}  // namespace
}  // namespace fovea

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
        const int status = fovea::run_command_line(argc, argv);
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
