#include "serve/api/forms_of.h"

#include "host/grammar/grammar.h"

namespace fovea::serve {
namespace {

/// Definitions of a tool's parameters, which they refer to from the root, become the root's.
void hoist(Json& parameters, Json& root) {
    for (const char* name : {"$defs", "definitions"}) {
        const auto found = parameters.find(name);
        if (found == parameters.end() || !found->is_object()) continue;
        for (const auto& [key, value] : found->items()) {
            if (root.contains(name) && root[name].contains(key) && root[name][key] != value)
                refuse("tools", "one definition of each name", "two of " + key.substr(0, 60));
            root[name][key] = value;
        }
        parameters.erase(name);
    }
}

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

}  // namespace

Json schema_of_calls(const Json& tools, const std::string& name) {
    Json root = Json::object(), calls = Json::array();
    for (const Json& tool : tools) {
        const Json& function = tool["function"];
        if (!name.empty() && function["name"] != name) continue;
        Json parameters = function.contains("parameters") && function["parameters"].is_object() ? function["parameters"]
                                                                                                : Json::object();
        hoist(parameters, root);
        if (names_nothing(parameters)) parameters = {{"type", "object"}, {"additionalProperties", false}};
        calls.push_back(
            {{"type", "object"},
             {"properties", {{"name", {{"const", function["name"]}}}, {"arguments", std::move(parameters)}}},
             {"required", {"name", "arguments"}},
             {"additionalProperties", false}});
    }
    if (calls.size() == 1)
        root.update(calls[0]);
    else
        root["anyOf"] = std::move(calls);
    return root;
}

Constrain form_of(const Request& request, Forms& forms) {
    if (request.form == Form::any) return {};
    const bool is_written = request.form == Form::grammar || request.form == Form::regex;
    const std::string text = is_written                     ? request.grammar
                             : request.form == Form::schema ? request.schema.dump()
                             : request.form == Form::tool   ? schema_of_calls(request.tools, request.tool).dump()
                                                            : R"({"type": "object"})";
    try {
        return forms.find(request.form, text, request.compact);
    } catch (const grammar::GrammarError& error) {
        const std::string param = request.form == Form::tool ? "tools" : request.form_field;
        throw RequestError(400, param + ": " + error.what(), param);
    }
}

}  // namespace fovea::serve
