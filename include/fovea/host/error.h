// How the host library says no: one line for a person.
#pragma once
#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)  // everywhere: what the library throws is caught by its type

namespace fovea {
namespace host {

/// The one kind of exception that host code throws on purpose. Its line names the file or argument it speaks of and says
/// "expected X, got Y". A line may hold names out of files: control characters become question marks, and a long line
/// is cut.
struct Error : std::runtime_error {
    explicit Error(const std::string& line) : std::runtime_error(printable(line)) {}

private:
    static std::string printable(std::string line);
};

/// An argument's value cannot be taken, whatever the files hold. The command line exits with status 2 then.
struct ArgumentError : Error {
    using Error::Error;
};

}  // namespace host
}  // namespace fovea
#pragma GCC visibility pop
