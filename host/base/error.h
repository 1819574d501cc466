// How host code says no: one line for a person.
#pragma once
#include <stdexcept>
#include <string>

#include "fovea/status.h"

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

/// A status that is not ok in words. An unreadable file's say why; a checksum's give both in hexadecimal.
[[nodiscard]] std::string status_words(const Status& status);

/// Throws host::Error unless `status` is ok: its words, after `subject` (mostly a file's name) where there is one.
void require(const Status& status, const std::string& subject = {});

}  // namespace fovea
