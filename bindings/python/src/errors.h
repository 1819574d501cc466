// How the engine's statuses and the converter's refusals become exceptions of Python, each with one sentence.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "host/base/error.h"

namespace fovea::python {

namespace nb = nanobind;

/// A str of bytes that may be no text, which become U+FFFD.
[[nodiscard]] nb::object str_of(const std::string& text);

/// What is no status: a TypeError or a ValueError.
struct TypeRefused : std::runtime_error {
    using runtime_error::runtime_error;
};
struct ValueRefused : std::runtime_error {
    using runtime_error::runtime_error;
};
/// "what: expected this, got that", as either.
[[noreturn]] void refuse_type(const std::string& what, const std::string& expected, const std::string& got);
[[noreturn]] void refuse_value(const std::string& what, const std::string& expected, const std::string& got);

/// Adds FullError and Cancelled to the module, and tells Python how each of the above is raised, and host::Error: ValueError,
/// unless a status says otherwise: OSError, MemoryError, fovea.FullError, fovea.Cancelled. They may be thrown without the GIL.
void bind_errors(nb::module_& module);

}  // namespace fovea::python
