// Texts from texts: one model's memory for them, one call at a time.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/opened.h"
#include "fovea/host/translator.h"

namespace fovea::python {

class PyTranslator {
public:
    /// n_beams 0: as many as the model says.
    PyTranslator(const ModelHandle& model, std::uint32_t n_threads, const std::string& isa, std::uint32_t n_beams);

    /// Writes from the source's ids. A language's name may be empty; n_new 0: as many tokens as the model allows.
    [[nodiscard]] nb::dict run(const nb::object& source, nb::handle from_language, nb::handle to_language,
                               std::uint32_t n_new, bool special);
    [[nodiscard]] std::uint64_t arena_bytes() const { return translator_->n_bytes(); }

private:
    SharedModel opened_;
    PassGate gate_;
    std::unique_ptr<Translator> translator_;
};

void bind_translate(nb::module_& module);

}  // namespace fovea::python
