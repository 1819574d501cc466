#include "tools/options/answer_form.h"

#include "host/base/error.h"
#include "host/base/text_file.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
void FormOptions::check() const {
    if (!schema_path.empty() + !grammar_path.empty() + regex.has_value() > 1)
        throw UsageError("--json-schema, --grammar and --regex: expected one of them, got several");
}

void add_form(const Verb& verb, FormOptions& form) {
    verb.input("--json-schema", form.schema_path, "a file: the answer is JSON that this schema validates");
    verb.input("--grammar", form.grammar_path, "a file: the answer fits this grammar (GBNF)");
    verb.text("--regex", form.regex, "the answer matches this regular expression");
    verb.flag("--compact", form.compact, "with --json-schema: no space between the answer's parts");
}

static const std::string& path_of(const FormOptions& options) {
    return !options.schema_path.empty() ? options.schema_path : options.grammar_path;
}

std::string form_text(const FormOptions& options) {
    return options.regex ? *options.regex : read_text_file(path_of(options));
}

grammar::Grammar read_form(const FormOptions& options, const std::string& text) {
    try {
        if (options.regex) return grammar::read_regex(text);
        if (!options.grammar_path.empty()) return grammar::read_gbnf(text);
        return grammar::read_json_schema(text, {.compact = options.compact});
    } catch (const grammar::GrammarError& error) {
        throw host::Error((options.regex ? "--regex" : path_of(options)) + ": " + error.what());
    }
}

CompiledForm compile_form(const FormOptions& options, const host::Opened& opened, const grammar::CompileOptions& how) {
    options.check();
    const grammar::Grammar grammar = read_form(options, form_text(options));
    try {
        CompiledForm compiled;
        compiled.index = grammar::index_vocabulary(opened.tokenizer);
        compiled.form = grammar::compile(grammar, opened.tokenizer, compiled.index, how);
        return compiled;
    } catch (const grammar::GrammarError& error) {
        throw host::Error(std::string("the form of answers: ") + error.what());
    }
}

AnswerForm::AnswerForm(const FormOptions& options, const host::Opened& opened) {
    if (!options.wanted()) return;
    compiled_ = compile_form(options, opened);
    require(open_constraint(opened.tokenizer, compiled_.form, compiled_.index, constraint_), "the form of answers");
    memory_.resize((constraint_state_bytes(constraint_) + 7) / 8);
    require(make_constraint_state(constraint_, std::as_writable_bytes(std::span(memory_)), state_));
}

TokenFilter AnswerForm::start() {
    restart(state_);
    return filter_of(state_);
}

}  // namespace fovea
