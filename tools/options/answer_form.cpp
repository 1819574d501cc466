#include "tools/options/answer_form.h"

#include "fovea/mapping.h"
#include "host/base/error.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
namespace {

[[nodiscard]] std::string read_text(const std::string& path) {
    Mapping file;
    require(map_file(path.c_str(), file), path);
    const std::span<const std::byte> bytes = file.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void FormOptions::check() const {
    if (!schema_path.empty() + !grammar_path.empty() + has_regex > 1)
        throw UsageError("--json-schema, --grammar and --regex: expected one of them, got several");
}

grammar::Grammar read_form(const FormOptions& options) {
    const std::string& path = !options.schema_path.empty() ? options.schema_path : options.grammar_path;
    try {
        if (options.has_regex) return grammar::read_regex(options.regex);
        const std::string text = read_text(path);
        if (!options.grammar_path.empty()) return grammar::read_gbnf(text);
        return grammar::read_json_schema(text, {.compact = options.compact});
    } catch (const grammar::GrammarError& error) {
        throw host::Error((options.has_regex ? "--regex" : path) + ": " + error.what());
    }
}

CompiledForm compile_form(const FormOptions& options, const host::Opened& opened, const grammar::CompileOptions& how) {
    options.check();
    const grammar::Grammar grammar = read_form(options);
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
