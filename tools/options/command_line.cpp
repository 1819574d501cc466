#include "tools/options/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "fovea/version.h"
#include "host/base/error.h"
#include "host/base/nearest.h"
#include "host/base/output_file.h"
#include "tools/terminal/usage_error.h"

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

}  // namespace

int run_command_line(int argc, char** argv, std::span<AddVerb* const> verbs) {
    CLI::App app{
        "Runs attention models from one flat file on this machine's CPU, with the same bits on every CPU.\n"
        "With no model, `fovea run` shows the one that is built in."};
    app.name("fovea");
    app.require_subcommand(0, 1);  // else a file named like a verb would be one more
    app.set_version_flag("-v,--version", kVersion);
    for (AddVerb* add : verbs) add(app);
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

}  // namespace fovea
