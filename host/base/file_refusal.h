// A refusal of the system's: of a file that cannot be read, made or written.
#pragma once
#include "host/base/refusal.h"

namespace fovea {

/// One that says why. The line is the path and `words`.
struct FileRefusal : Refusal {
    FileRefusal(const std::string& of, const std::string& words, int number)
        : Refusal(of + ": " + words), path(of), error(number) {}
    std::string path;
    int error = 0;  ///< as errno has it; 0: not known
};

}  // namespace fovea
