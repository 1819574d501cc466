// The parts of the extension module.
#pragma once
#include <nanobind/nanobind.h>

namespace fovea::python {

void bind_attend(nanobind::module_& module);
void bind_convert(nanobind::module_& module);
void bind_show(nanobind::module_& module);
void bind_transcribe(nanobind::module_& module);
void bind_translate(nanobind::module_& module);
void bind_workspace(nanobind::module_& module);

}  // namespace fovea::python
