#include "serve/api/forms_of.h"

#include "host/chat/answer_reader.h"

namespace fovea::serve {

namespace {

/// Words of a schema about itself, which allow and forbid nothing.
void drop_words(Json& schema) {
    if (schema.is_array())
        for (Json& one : schema) drop_words(one);
    if (!schema.is_object()) return;
    for (const char* name : {"title", "description", "examples", "$comment"}) schema.erase(name);
    for (auto& [name, value] : schema.items()) {
        const bool is_data =
            name == "enum" || name == "const" || name == "default" || name == "required" || name == "dependentRequired";
        const bool has_names = name == "properties" || name == "patternProperties" || name == "$defs" ||
                               name == "definitions" || name == "dependentSchemas" || name == "dependencies";
        if (!has_names || !value.is_object()) {
            if (!is_data) drop_words(value);
            continue;
        }
        for (Json& one : value) drop_words(one);
    }
}

/// The functions that may be called, as far as a form is made of them.
Json callable(const Request& request) {
    Json tools = Json::array();
    for (const Json& tool : request.tools) {
        const Json& function = tool["function"];
        if (!request.tool.empty() && function["name"] != request.tool) continue;
        Json bare = {{"name", function["name"]}};
        if (function.contains("parameters")) bare["parameters"] = function["parameters"];
        if (bare.contains("parameters")) drop_words(bare["parameters"]);
        tools.push_back({{"function", std::move(bare)}});
    }
    return tools;
}

}  // namespace

std::optional<ForcedCall> forced_call_of(const Request& request, const ModelChat* chat) {
    if (request.form != Form::tool) return std::nullopt;
    const AnswerDialect dialect = chat ? chat->dialect() : dialect_of({});
    return ForcedCall(*dialect.calls, callable(request), request.tool, chat != nullptr);
}

Constrain form_of(const Request& request, const ModelChat* chat, Forms& forms) {
    if (request.form == Form::any) return {};
    try {
        if (const std::optional<ForcedCall> call = forced_call_of(request, chat)) {
            const std::string key = json_text(callable(request));
            return forms.find(request.form, key, request.compact,
                              [&] { return call->form({.compact = request.compact}); });
        }
        const bool is_written = request.form == Form::grammar || request.form == Form::regex;
        const std::string text = is_written                     ? request.grammar
                                 : request.form == Form::schema ? request.schema.dump()
                                                                : R"({"type": "object"})";
        return forms.find(request.form, text, request.compact);
    } catch (const FormsBusy& error) {
        throw RequestError(429, error.what());
    } catch (const grammar::GrammarError& error) {
        const std::string param = request.form == Form::tool ? "tools" : request.form_field;
        throw RequestError(400, param + ": " + error.what(), param);
    }
}

}  // namespace fovea::serve
