// fovea tokenize: a text's ids.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convert/refusal.h"
#include "opened.h"
#include "options.h"
#include "verbs/verbs.h"

namespace fovea {
namespace {

struct IdsOptions {
    CommonOptions common;
    std::string model, text;
    bool special = false;
};

void print_ids(IdsOptions& options) {
    need_model(options.model);
    settle(options.common);
    const OpenedModel opened = open_path(options.model);
    const std::vector<Token> tokens = tokenize_text(opened, options.text, options.special);
    if (options.common.json) {
        std::printf("%s\n", nlohmann::ordered_json{{"n_tokens", tokens.size()}, {"tokens", tokens}}.dump().c_str());
        return;
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) std::printf("%s%u", i ? " " : "", tokens[i]);
    std::printf("\n");
}

}  // namespace

void add_tokenize(CLI::App& app) {
    auto options = std::make_shared<IdsOptions>();
    CLI::App& verb = *app.add_subcommand("tokenize", "A text's token ids on one line");
    add_model(verb, options->model);
    CLI::Option* text = add_text(verb, "-p,--prompt", options->text, "the text");
    verb.add_flag("--special", options->special, "read <|name|> in the text as that special token");
    add_common(verb, options->common);
    verb.callback([options, text] {
        if (text->count() == 0) throw Refusal("-p: expected a text, got none", 2);
        print_ids(*options);
    });
}

}  // namespace fovea
