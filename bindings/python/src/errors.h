// How the engine's statuses and the converter's refusals become exceptions of Python, each with one sentence.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "fovea/status.h"

namespace fovea::python {

namespace nb = nanobind;

/// A status that is not ok, after `subject` (a path, a parameter) where there is one. ValueError, unless the code says
/// otherwise: OSError, MemoryError, fovea.FullError, fovea.Cancelled.
struct StatusError : std::runtime_error {
    StatusError(const Status& of, const std::string& subject);
    Status status;
    std::string path;
};
/// What is no status: a TypeError or a ValueError.
struct TypeRefused : std::runtime_error {
    using runtime_error::runtime_error;
};
struct ValueRefused : std::runtime_error {
    using runtime_error::runtime_error;
};

/// Throws StatusError unless `status` is ok. As all that throws, with or without the GIL.
void check(const Status& status, const std::string& subject = {});

/// Adds FullError and Cancelled to the module, and tells Python how each of the above is raised.
void bind_errors(nb::module_& module);

}  // namespace fovea::python
