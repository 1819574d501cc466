#include "fovea/host/form.h"

#include <utility>

#include "host/base/error.h"
#include "host/grammar/grammar.h"

namespace fovea::host {
namespace {

grammar::Grammar read(FormKind kind, std::string_view text) {
    switch (kind) {
        case FormKind::gbnf: return grammar::read_gbnf(text);
        case FormKind::regex: return grammar::read_regex(text);
        case FormKind::json_schema: break;
    }
    return grammar::read_json_schema(text);
}

}  // namespace

std::shared_ptr<const Form> Forms::compile(FormKind kind, std::string_view text) const {
    const Tokenizer& tokenizer = opened_.need_tokenizer();
    const grammar::Grammar grammar = read(kind, text);
    std::call_once(index_made_, [&] {
        index_ = std::make_shared<const std::vector<std::byte>>(grammar::index_vocabulary(tokenizer));
    });
    auto form = std::make_shared<Form>();
    form->index = index_;
    form->bytes = grammar::compile(grammar, tokenizer, *index_);
    require(open_constraint(tokenizer, form->bytes, *form->index, form->constraint), "form");
    return form;
}

FormPlace::FormPlace(std::shared_ptr<const Form> form)
    : form_(std::move(form)), memory_((constraint_state_bytes(form_->constraint) + 7) / 8) {
    require(make_constraint_state(form_->constraint, std::as_writable_bytes(std::span(memory_)), state_), "form");
}

TokenFilter FormPlace::start() {
    restart(state_);
    return filter_of(state_);
}

}  // namespace fovea::host
