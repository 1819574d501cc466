#include "host/text/forced_call.h"

#include <algorithm>

#include "host/text/call_form.h"

namespace fovea {
namespace {

/// Whether a function has no parameters: its schema names none, and allows none by another word.
bool names_nothing(const Json& parameters) {
    static constexpr const char* kPlain[] = {"type", "properties", "required", "title", "description", "$schema"};
    for (const auto& [name, value] : parameters.items()) {
        if (std::find(std::begin(kPlain), std::end(kPlain), name) == std::end(kPlain)) return false;
        if (name == "type" && value != "object") return false;
        if ((name == "properties" || name == "required") && !value.empty()) return false;
    }
    return true;
}

Json parameters_of(const Json& function) {
    const auto found = function.find("parameters");
    Json parameters = found != function.end() && found->is_object() ? *found : Json::object();
    if (names_nothing(parameters)) parameters = {{"type", "object"}, {"additionalProperties", false}};
    return parameters;
}

}  // namespace

ForcedCall::ForcedCall(const Dialect& dialect, const Json& tools, std::string_view name, bool in_prompt)
    : dialect_(&dialect) {
    bool plain = true;
    for (const Json& tool : tools) {
        const std::string& own = tool.at("function").at("name").get_ref<const std::string&>();
        if (!name.empty() && own != name) continue;
        functions_.push_back(tool["function"]);
        plain = plain && is_plain_name(own);
    }
    if (functions_.empty()) throw grammar::GrammarError("expected a tool of the name, got none");
    is_own_ = plain && std::all_of(functions_.begin(), functions_.end(), [&](const Json& function) {
                  return has_own_form(dialect, parameters_of(function));
              });
    CallWords words = is_own_ ? own_call_words(dialect) : call_words(dialect, plain);
    const auto spelled = [&](const Json& function) {  // as a member of JSON has it, quotes left out
        const std::string text = json_text(function["name"]);
        return plain ? function["name"].get<std::string>() : text.substr(1, text.size() - 2);
    };
    for (Json& function : functions_) function["name"] = spelled(function);
    TaintedText before(words.before);
    if (functions_.size() == 1) {
        before.add(TaintedText(functions_[0]["name"].get<std::string>(), true));
        before.add(words.between);
        functions_[0]["name"] = words.between = "";
    }
    const std::string_view all = before.text();
    const std::size_t n_begun = in_prompt ? all.size() : all.starts_with(dialect.open) ? dialect.open.size() : 0;
    begun_ = before.part(all.substr(0, n_begun));
    before_ = all.substr(n_begun);
    between_ = std::move(words.between);
    after_ = std::move(words.after);
}

grammar::Grammar ForcedCall::form(const grammar::SchemaOptions& options) const {
    grammar::Grammar all;
    std::vector<grammar::NodeId> calls;
    for (const Json& function : functions_) {
        const Json parameters = parameters_of(function);
        const grammar::NodeId arguments =
            is_own_ ? add_own_form(all, *dialect_, parameters, options)
                    : all.rule(all.add_all(grammar::read_json_schema(json_text(parameters), options)));
        calls.push_back(all.sequence(
            {all.bytes(before_ + function["name"].get<std::string>() + between_), arguments, all.bytes(after_)}));
    }
    all.root = all.add_rule("root", all.choice(std::move(calls)));
    return all;
}

BegunAnswer begin_answer(const AnswerDialect& dialect, TaintedText prompt, const ForcedCall* call, FormPlace form) {
    std::string begun(begun_answer(dialect, prompt.text()));
    if (!call && form != FormPlace::none && dialect.calls->syntax == CallSyntax::channels) {
        const std::string opened =
            begun.ends_with(kHeaderEnd) ? "" : std::string(kHeaderBegins[1]) + "final" + std::string(kHeaderEnd);
        prompt.add(opened);
        return {std::move(prompt), begun + opened};
    }
    if (!call && form != FormPlace::at_once) return {std::move(prompt), std::move(begun)};
    if (begun == dialect.reasoning->open) {
        prompt.add(std::string(dialect.reasoning->close) + "\n\n");
        begun.clear();
    }
    if (!call) return {std::move(prompt), std::move(begun)};
    begun += call->begun().text();
    prompt.add(call->begun());
    return {std::move(prompt), std::move(begun)};
}

}  // namespace fovea
