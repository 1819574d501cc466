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

ForcedCall call_of(const Json& functions, const std::string& tool, const ModelChat* chat) {
    const AnswerDialect dialect = chat ? chat->dialect() : dialect_of({});
    return ForcedCall(*dialect.calls, functions, tool, chat != nullptr);
}

}  // namespace

std::optional<ForcedCall> forced_call_of(const Request& request, const ModelChat* chat) {
    if (request.form != Form::tool) return std::nullopt;
    return call_of(callable(request), request.tool, chat);
}

FormText form_text_of(const Request& request) {
    FormText form{.form = request.form, .compact = request.compact, .field = request.form_field, .tool = request.tool};
    switch (request.form) {
        case Form::any: return form;
        case Form::tool:
            form.text = json_text(callable(request));
            form.field = "tools";
            break;
        case Form::grammar:
        case Form::regex: form.text = request.grammar; break;
        case Form::schema: form.text = request.schema.dump(); break;
        case Form::json: form.text = R"({"type": "object"})"; break;
    }
    if (form.text.size() > kMostFormText)
        refuse(form.field, "at most " + std::to_string(kMostFormText) + " bytes", std::to_string(form.text.size()));
    return form;
}

Constrain form_of(const FormText& form, const ModelChat* chat, Forms& forms) {
    if (form.form == Form::any) return {};
    try {
        if (form.form != Form::tool) return forms.find(form.form, form.text, form.compact, form.mark);
        return forms.find(form.form, form.text, form.compact, form.mark, [&] {
            return call_of(read_json(form.text), form.tool, chat).form({.compact = form.compact});
        });
    } catch (const FormsBusy& error) {
        throw RequestError(429, error.what());
    } catch (const grammar::GrammarError& error) {
        throw RequestError(400, form.field + ": " + error.what(), form.field);
    }
}

}  // namespace fovea::serve
