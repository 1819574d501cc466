// fovea grammar: a form of answers as a file, for programs that have no compiler of forms with them.
#include "host/base/output_file.h"
#include "tools/measure/board.h"
#include "tools/options/answer_form.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct GrammarOptions {
    CommonOptions common;
    FormOptions form;
    std::string model, output;
    bool small = false;
};

void write_form(GrammarOptions& options) {
    if (options.output.empty()) throw UsageError("-o: expected the file to write, got none");
    if (!options.form.wanted()) throw UsageError("form: expected --json-schema, --grammar or --regex, got none");
    settle(options.common);
    const host::Opened opened = open_path_or_demo(options.model);
    (void)opened.need_tokenizer();
    const CompiledForm compiled =
        compile_form(options.form, opened, {.own_index = true, .known_masks = !options.small});
    const std::uint64_t state_bytes =
        BoardModel(opened.model.bytes(), opened.name).form_state_bytes(std::as_bytes(std::span(compiled.form)));
    OutputFile file(options.output);
    file.stream().write(reinterpret_cast<const char*>(compiled.form.data()),
                        static_cast<std::streamsize>(compiled.form.size()));
    file.close();
    if (options.common.json)
        return print_line({{"file", options.output},
                           {"bytes", compiled.form.size()},
                           {"index_bytes", compiled.index.size()},
                           {"state_bytes", state_bytes}});
    std::fprintf(stderr, "%s bytes, of which %s are the vocabulary's; %s bytes for each text\n",
                 with_separators(compiled.form.size()).c_str(), with_separators(compiled.index.size()).c_str(),
                 with_separators(state_bytes).c_str());
}

}  // namespace

void add_grammar(CLI::App& app) {
    const auto declare = [](const Verb& verb, GrammarOptions& o) {
        verb.model(o.model, "a Fovea file, whose vocabulary it is for (default: the built-in model)");
        add_form(verb, o.form);
        verb.output("-o,--output", o.output, "the file to write");
        verb.flag("--small", o.small, "leave out masks: fewer bytes, slower on large vocabularies");
        verb.common(o.common);
    };
    add_verb<GrammarOptions>(app, "grammar", "Compile a form of answers to a file, for fovea_open_constraint",
                             write_form, declare);
}

}  // namespace fovea
