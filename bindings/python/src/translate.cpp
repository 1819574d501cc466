// Texts from texts: one model's memory for them, one call at a time.
#include <nanobind/stl/optional.h>

#include <memory>
#include <string>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/module.h"
#include "bindings/python/src/opened.h"
#include "bindings/python/src/session.h"
#include "fovea/host/translator.h"
#include "fovea/workspace.h"
#include "host/base/error.h"
#include "host/model/beam_options.h"

namespace fovea::python {
namespace {

class PyTranslator {
public:
    /// n_beams 0: as many as the model says.
    PyTranslator(const ModelHandle& model, std::uint32_t n_threads, const std::string& isa, std::uint32_t n_beams)
        : opened_(model.get()) {
        if (n_beams > kMostBeams)
            refuse_value("num_beams", "at most " + std::to_string(kMostBeams), std::to_string(n_beams));
        if (!opened_->adapters.empty())
            refuse_value("adapters", "none of a model that writes a text from another", opened_->adapters.front().name);
        const WithoutGil released;
        translator_ = std::make_unique<Translator>(
            *opened_, Translator::Options{.limits = {.n_threads = n_threads ? n_threads : default_threads(),
                                                     .isa = isa.empty() ? nullptr : isa.c_str(),
                                                     .cancel = gate_.flag()},
                                          .n_beams = n_beams});
    }

    /// Writes from the source, a text or ids; gives what Translation has. A language's name may be empty; n_new 0: as many
    /// tokens as the model allows.
    [[nodiscard]] nb::tuple run(const nb::object& source, nb::handle from_language, nb::handle to_language,
                                std::uint32_t n_new, bool special) {
        const bool is_text = nb::isinstance<nb::str>(source);
        const std::string text(is_text ? utf8_of(source, "source") : "");
        const std::vector<Token> ids = is_text ? std::vector<Token>() : read_ids(source, "source");
        const Languages languages{std::string(utf8_of(from_language, "from_language")),
                                  std::string(utf8_of(to_language, "to_language")), "from_language", "to_language"};
        const GenerateOptions how{.n_new = n_new ? n_new : 0xffffffffu, .show_special = special};
        Translator::Text made;
        require(gate_.run([&] {
            try {
                if (is_text) {
                    made = translator_->translate(text, languages, how, {.parse_special = special});
                } else {
                    translator_->start(ids, languages, how);
                    made = translator_->write();
                }
            } catch (const host::Error&) {
                if (!gate_.flag()->load()) throw;
                return Status{Code::cancelled, "translate", 0, 0};
            }
            return Status{};
        }));
        return nb::make_tuple(opened_->tokenizer.valid() ? str_of(made.text) : nb::none(),
                              nb::tuple(ids_list(made.tokens)), made.score, name_of(made.finish), made.n_parts);
    }
    [[nodiscard]] std::uint64_t arena_bytes() const { return translator_->n_bytes(); }

private:
    SharedModel opened_;
    PassGate gate_;
    std::unique_ptr<Translator> translator_;
};

}  // namespace

void bind_translate(nb::module_& module) {
    nb::class_<PyTranslator>(module, "Translator", "Memory for writing texts from texts with a model.")
        .def(nb::init<const ModelHandle&, std::uint32_t, const std::string&, std::uint32_t>(), nb::arg("model"),
             nb::arg("n_threads") = 0, nb::arg("isa") = "", nb::arg("n_beams") = 0)
        .def("run", &PyTranslator::run, nb::arg("source"), nb::arg("from_language"), nb::arg("to_language"),
             nb::arg("n_new"), nb::arg("special"))
        .def_prop_ro("arena_bytes", &PyTranslator::arena_bytes);
}

}  // namespace fovea::python
