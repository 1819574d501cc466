// What the engine refuses, in words.
#pragma once
#include "host/base/error.h"

namespace fovea::host {

/// A status that is not ok, as a line.
struct StatusError : Error {
    StatusError(const Status& of, const std::string& line) : Error(line), status(of) {}
    Status status;
};

}  // namespace fovea::host
