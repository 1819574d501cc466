// The command line's arguments: the verb that they name does what it does, and what is none of its options is refused.
#pragma once
#include <span>

namespace CLI {
class App;
}

namespace fovea {

/// Adds a verb with its options and help.
using AddVerb = void(CLI::App& app);

/// The exit status. Throws UsageError.
int run_command_line(int argc, char** argv, std::span<AddVerb* const> verbs);

}  // namespace fovea
