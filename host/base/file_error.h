// What the system refuses: a file that cannot be read, made or written.
#pragma once
#include "host/base/error.h"

namespace fovea::host {

/// One that says why. The line is the path and `words`.
struct FileError : Error {
    FileError(const std::string& of, const std::string& words, int number)
        : Error(of + ": " + words), path(of), error(number) {}
    std::string path;
    int error = 0;  ///< as errno has it; 0: not known
};

}  // namespace fovea::host
