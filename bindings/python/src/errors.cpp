#include "bindings/python/src/errors.h"

#include <cstring>

#include "host/base/file_error.h"
#include "host/base/status_error.h"

namespace fovea::python {
namespace {

/// A message as a str: it may have bytes of a file or a path in it that are no text.
nb::object text_of(const char* message) {
    PyObject* text = PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "backslashreplace");
    if (!text) throw nb::python_error();
    return nb::steal(text);
}
void set(PyObject* type, const std::exception& error) { PyErr_SetObject(type, text_of(error.what()).ptr()); }

PyObject* full_error = nullptr;
PyObject* cancelled = nullptr;

/// OSError, or what of it Python has for the number: FileNotFoundError and its kin. Python adds the path to the words.
void raise_os(int number, const std::string& path, const std::exception& error) {
    const std::string line = error.what(), before = path + ": ";
    const std::string words = line.starts_with(before) ? line.substr(before.size()) : line;
    const nb::object value = number ? nb::object(nb::make_tuple(number, text_of(words.c_str()), text_of(path.c_str())))
                                    : text_of(error.what());
    PyErr_SetObject(PyExc_OSError, value.ptr());
}

void raise_status(const host::StatusError& error) {
    switch (error.status.code) {
        case Code::io_error: raise_os(static_cast<int>(error.status.had), {}, error); return;
        case Code::arena_too_small: set(PyExc_MemoryError, error); return;
        case Code::threads_unavailable: set(PyExc_OSError, error); return;
        case Code::context_full:
        case Code::pool_full: set(full_error, error); return;
        case Code::cancelled: set(cancelled, error); return;
        default: set(PyExc_ValueError, error);
    }
}

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const TypeRefused& error) {
        set(PyExc_TypeError, error);
    } catch (const ValueRefused& error) {
        set(PyExc_ValueError, error);
    } catch (const host::FileError& error) {
        raise_os(error.error, error.path, error);
    } catch (const host::StatusError& error) {
        raise_status(error);
    } catch (const host::Error& error) {
        set(PyExc_ValueError, error);
    }
}

PyObject* add(nb::module_& module, const char* name, PyObject* base, const char* doc) {
    PyObject* made = PyErr_NewExceptionWithDoc((std::string("fovea.") + name).c_str(), doc, base, nullptr);
    if (!made) throw nb::python_error();
    module.attr(name) = nb::borrow(made);
    return made;
}

}  // namespace

void refuse_type(const std::string& what, const std::string& expected, const std::string& got) {
    throw TypeRefused(what + ": expected " + expected + ", got " + got);
}

void refuse_value(const std::string& what, const std::string& expected, const std::string& got) {
    throw ValueRefused(what + ": expected " + expected + ", got " + got);
}

nb::object str_of(const std::string& text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void bind_errors(nb::module_& module) {
    full_error = add(module, "FullError", PyExc_ValueError, "A context or a pool of caches has no room left.");
    cancelled = add(module, "Cancelled", PyExc_RuntimeError, "A pass that cancel() ended; nothing has changed.");
    nb::register_exception_translator(translate);
}

}  // namespace fovea::python
