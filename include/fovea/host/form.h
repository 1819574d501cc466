// Forms of answers at run time: a JSON schema, a GBNF grammar or a regular expression, compiled for a model's vocabulary.
//
//     host::Forms forms(opened);                                     // once for a model
//     host::FormPlace place(forms.compile(host::FormKind::regex, "yes|no"));
//     generation.generate(tokens, {.filter = place.start()}, print);
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "fovea/constraint.h"
#include "fovea/host/opened.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
namespace host {

enum class FormKind { json_schema, gbnf, regex };

/// A compiled form, which any number of answers and threads share.
struct Form {
    std::shared_ptr<const std::vector<std::byte>> index;  ///< of the vocabulary
    std::vector<std::byte> bytes;
    Constraint constraint;  ///< a view of both
};

/// Compiles forms for the vocabulary of a model, which must outlive this. Any number of threads use it.
class Forms {
public:
    explicit Forms(const Opened& opened) : opened_(opened) {}

    /// Throws ArgumentError for a text that is no such form or that nothing fits, Error without a tokenizer.
    [[nodiscard]] std::shared_ptr<const Form> compile(FormKind kind, std::string_view text) const;

private:
    const Opened& opened_;
    mutable std::once_flag index_made_;
    mutable std::shared_ptr<const std::vector<std::byte>> index_;  // made for the first form
};

/// The place in a form that one answer after another has reached. Its memory is taken by the constructor.
class FormPlace {
public:
    explicit FormPlace(std::shared_ptr<const Form> form);

    /// The filter of the next answer, which this must outlive.
    [[nodiscard]] TokenFilter start();
    /// Whether the answer so far fits.
    [[nodiscard]] bool complete() const { return can_end(state_); }

private:
    std::shared_ptr<const Form> form_;
    std::vector<std::uint64_t> memory_;
    ConstraintState state_;
};

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
