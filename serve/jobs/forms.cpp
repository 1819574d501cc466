#include "serve/jobs/forms.h"

#include "fovea/constraint.h"

namespace fovea::serve {

struct CompiledForm {
    std::shared_ptr<const std::vector<std::byte>> index;
    std::vector<std::byte> form;
    Constraint constraint;
};

namespace {

constexpr std::size_t kMostText = 64 << 10;  // bytes of a schema or grammar
constexpr std::size_t kMostKept = 32;        // forms

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

Constrain Forms::find(Form form, const std::string& text, bool compact, const std::function<grammar::Grammar()>& make) {
    if (text.size() > kMostText)
        throw grammar::GrammarError("expected at most " + std::to_string(kMostText) + " bytes, got " +
                                    std::to_string(text.size()));
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
        if (kept->form != form || kept->compact != compact || kept->text != text) continue;
        kept_.splice(kept_.begin(), kept_, kept);
        return [compiled = kept_.front().compiled] { return start(compiled); };
    }
    const grammar::Grammar grammar = make ? make() : read(form, text, compact);
    if (!index_) index_ = std::make_shared<const std::vector<std::byte>>(grammar::index_vocabulary(tokenizer_));
    auto made = std::make_shared<CompiledForm>();
    made->index = index_;
    made->form = grammar::compile(grammar, tokenizer_, *index_);
    const Status status = open_constraint(tokenizer_, made->form, *made->index, made->constraint);
    if (!status.ok()) throw grammar::GrammarError(StatusLine(status).c_str());
    kept_.push_front({form, compact, text, made});
    if (kept_.size() > kMostKept) kept_.pop_back();
    return [made] { return start(made); };
}

}  // namespace fovea::serve
