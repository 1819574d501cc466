#include "errors.h"

#include "convert/refusal.h"

namespace fovea::python {
namespace {

std::string words_of(const Status& status, const std::string& subject) {
    const std::string words = status_words(status);
    return subject.empty() ? words : subject + ": " + words;
}

PyObject* full_error = nullptr;
PyObject* cancelled = nullptr;

void raise_status(const StatusError& error) {
    switch (error.status.code) {
        case Code::io_error: {
            const nb::object value =
                error.status.had
                    ? nb::object(nb::make_tuple(static_cast<int>(error.status.had), error.what(), error.path))
                    : nb::object(nb::str(error.what()));
            PyErr_SetObject(PyExc_OSError, value.ptr());
            return;
        }
        case Code::arena_too_small: PyErr_SetString(PyExc_MemoryError, error.what()); return;
        case Code::threads_unavailable: PyErr_SetString(PyExc_OSError, error.what()); return;
        case Code::context_full:
        case Code::pool_full: PyErr_SetString(full_error, error.what()); return;
        case Code::cancelled: PyErr_SetString(cancelled, error.what()); return;
        default: PyErr_SetString(PyExc_ValueError, error.what());
    }
}

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
        raise_status(error);
    } catch (const TypeRefused& error) {
        PyErr_SetString(PyExc_TypeError, error.what());
    } catch (const ValueRefused& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const Refusal& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    }
}

PyObject* add(nb::module_& module, const char* name, PyObject* base, const char* doc) {
    PyObject* made = PyErr_NewExceptionWithDoc((std::string("fovea.") + name).c_str(), doc, base, nullptr);
    if (!made) throw nb::python_error();
    module.attr(name) = nb::borrow(made);
    return made;
}

}  // namespace

StatusError::StatusError(const Status& of, const std::string& subject)
    : std::runtime_error(words_of(of, subject)), status(of), path(subject) {}

void check(const Status& status, const std::string& subject) {
    if (!status.ok()) throw StatusError(status, subject);
}

void bind_errors(nb::module_& module) {
    full_error = add(module, "FullError", PyExc_ValueError, "A context or a pool of caches has no room left.");
    cancelled = add(module, "Cancelled", PyExc_RuntimeError, "A pass that cancel() ended; nothing has changed.");
    nb::register_exception_translator(translate);
}

}  // namespace fovea::python
