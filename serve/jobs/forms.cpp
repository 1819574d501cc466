#include "serve/jobs/forms.h"

#include "fovea/constraint.h"

namespace fovea::serve {

/// Its bytes count as long as an answer is held to it, or it is kept.
struct CompiledForm {
    CompiledForm(std::shared_ptr<const std::vector<std::byte>> index_, std::vector<std::byte> form_,
                 std::shared_ptr<std::atomic<std::size_t>> n_bytes_)
        : index(std::move(index_)), form(std::move(form_)), n_bytes(std::move(n_bytes_)) {
        *n_bytes += form.size();
    }
    ~CompiledForm() { *n_bytes -= form.size(); }
    CompiledForm(const CompiledForm&) = delete;
    CompiledForm& operator=(const CompiledForm&) = delete;

    const std::shared_ptr<const std::vector<std::byte>> index;
    const std::vector<std::byte> form;
    const std::shared_ptr<std::atomic<std::size_t>> n_bytes;
    Constraint constraint;
};

namespace {

constexpr std::size_t kMostKept = 32;  // forms

/// One answer's place in a form, with the memory it lives in.
struct FormPlace {
    std::shared_ptr<const CompiledForm> form;
    std::vector<std::uint64_t> memory;
    ConstraintState state;
};

Constrained start(std::shared_ptr<const CompiledForm> form) {
    std::vector<std::uint64_t> memory((constraint_state_bytes(form->constraint) + 7) / 8);
    const auto place = std::make_shared<FormPlace>(FormPlace{std::move(form), std::move(memory), {}});
    const auto bytes = std::as_writable_bytes(std::span(place->memory));
    (void)make_constraint_state(place->form->constraint, bytes, place->state);
    return {place, filter_of(place->state)};
}

grammar::Grammar read(Form form, const std::string& text, bool compact) {
    if (form == Form::grammar) return grammar::read_gbnf(text);
    if (form == Form::regex) return grammar::read_regex(text);
    return grammar::read_json_schema(text, {.compact = compact});
}

}  // namespace

Constrain Forms::find(Form form, const std::string& text, bool compact, const std::string& mark,
                      const std::function<grammar::Grammar()>& make) {
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
        if (kept->form != form || kept->compact != compact || kept->text != text || kept->mark != mark) continue;
        kept_.splice(kept_.begin(), kept_, kept);
        if (!kept->compiled) throw grammar::GrammarError(kept->refusal);
        return [compiled = kept->compiled] { return start(compiled); };
    }
    Kept made{form, compact, text, mark, nullptr, {}};
    try {
        grammar::Grammar grammar = make ? make() : read(form, text, compact);
        made.compiled = compiled(mark.empty() ? grammar : grammar::behind(mark, std::move(grammar)));
    } catch (const grammar::GrammarError& error) {
        made.refusal = error.what();
    }
    kept_.push_front(std::move(made));
    if (kept_.size() > kMostKept) kept_.pop_back();
    if (!kept_.front().compiled) throw grammar::GrammarError(kept_.front().refusal);
    return [compiled = kept_.front().compiled] { return start(compiled); };
}

std::shared_ptr<const CompiledForm> Forms::compiled(const grammar::Grammar& grammar) {
    if (!index_) index_ = std::make_shared<const std::vector<std::byte>>(grammar::index_vocabulary(tokenizer_));
    std::vector<std::byte> bytes = grammar::compile(grammar, tokenizer_, *index_);
    while (*n_bytes_ + bytes.size() > kMostFormBytes && !kept_.empty()) kept_.pop_back();
    if (*n_bytes_ + bytes.size() > kMostFormBytes)
        throw FormsBusy("forms: expected at most " + std::to_string(kMostFormBytes) +
                        " bytes of those that answers have, got more; try again later");
    const auto made = std::make_shared<CompiledForm>(index_, std::move(bytes), n_bytes_);
    const Status status = open_constraint(tokenizer_, made->form, *made->index, made->constraint);
    if (!status.ok()) throw grammar::GrammarError(StatusLine(status).c_str());
    return made;
}

}  // namespace fovea::serve
