// `--json-schema`, `--grammar` and `--regex`: a form of answers, compiled for a model's vocabulary.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/constraint.h"
#include "fovea/host/opened.h"
#include "host/grammar/grammar.h"
#include "tools/options/options.h"

namespace fovea {

struct FormOptions {
    std::string schema_path, grammar_path;
    std::optional<std::string> regex;
    bool compact = false;

    [[nodiscard]] bool wanted() const { return !schema_path.empty() || !grammar_path.empty() || regex; }
    /// Throws host::Error where several are given.
    void check() const;
};

/// --json-schema, --grammar, --regex and --compact.
void add_form(const Verb& verb, FormOptions& form);

/// The schema, grammar or expression that the options ask for. Throws host::Error.
[[nodiscard]] std::string form_text(const FormOptions& options);
/// What that text means. Throws host::Error, which names the file.
[[nodiscard]] grammar::Grammar read_form(const FormOptions& options, const std::string& text);

/// A form with the index of the vocabulary that it is for.
struct CompiledForm {
    std::vector<std::byte> index, form;
};
/// Throws host::Error.
[[nodiscard]] CompiledForm compile_form(const FormOptions& options, const host::Opened& opened,
                                        const grammar::CompileOptions& how = {});

/// A form and one answer's place in it; nothing where none is wanted.
class AnswerForm {
public:
    AnswerForm(const FormOptions& options, const host::Opened& opened);
    AnswerForm(const AnswerForm&) = delete;
    AnswerForm& operator=(const AnswerForm&) = delete;

    [[nodiscard]] bool wanted() const { return state_.valid(); }
    /// For the next answer.
    [[nodiscard]] TokenFilter start();
    /// Whether the answer so far fits.
    [[nodiscard]] bool complete() const { return can_end(state_); }

private:
    CompiledForm compiled_;
    Constraint constraint_;
    std::vector<std::uint64_t> memory_;
    ConstraintState state_;
};

}  // namespace fovea
