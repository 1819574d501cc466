// How a tool says no: one line for a person, and the process's exit status.
#pragma once
#include <stdexcept>
#include <string>

namespace fovea {

/// Thrown by tools, caught once in main, which prints "fovea: " and what(). The line says what was wanted and what was
/// there, names the file it speaks of, and has no line break.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
    Refusal(const std::string& line, int status) : std::runtime_error(line), exit_code(status) {}
    int exit_code = 1;  ///< 2 for a usage error
};

}  // namespace fovea
