// fovea._fovea: the engine and the converter as the package's Python files use them.
#include "bindings/python/src/module.h"

#include "bindings/python/src/errors.h"
#include "bindings/python/src/form.h"
#include "bindings/python/src/opened.h"
#include "bindings/python/src/session.h"
#include "fovea/version.h"
#include "fovea/workspace.h"

NB_MODULE(_fovea, module) {
    namespace python = fovea::python;
    module.doc() = "What the package fovea is made of; use that.";
    module.attr("version") = FOVEA_VERSION;
    module.attr("numerics_version") = fovea::kNumericsVersion;
    // What daemon threads hold when Python ends is held for ever; a test of leaks asks for the warnings.
    nanobind::set_leak_warnings(false);
    module.def("set_leak_warnings", [](bool wanted) { nanobind::set_leak_warnings(wanted); });
    module.def("isa_names", [] {
        nanobind::list names;
        for (const char* name : fovea::isa_names()) names.append(nanobind::str(name));
        return names;
    });
    module.def("default_threads", [] { return fovea::default_threads(); });
    python::bind_errors(module);
    python::bind_model(module);
    python::bind_form(module);
    python::bind_session(module);
    python::bind_workspace(module);
    python::bind_attend(module);
    python::bind_convert(module);
    python::bind_show(module);
    python::bind_transcribe(module);
    python::bind_translate(module);
}
