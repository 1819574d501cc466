// Fields about the tools that an answer may call, each API's as chats have them.
#include <algorithm>

#include "serve/api/field_readers.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kMostTools = 1024;

void need_function(const Fields& tool) {
    if (const std::string type = tool.text("type"); type != "function")
        refuse(tool.path("type"), "function", type.substr(0, 40), "unsupported_parameter");
}

}  // namespace

/// Functions with names.
void read_tools(const Fields& fields, const char* name, const Json& tools, Request& request) {
    if (tools.empty()) return;
    if (!tools.is_array() || tools.size() > kMostTools)
        fields.refuse(name, "an array of at most " + std::to_string(kMostTools), tools);
    for (std::size_t i = 0; i < tools.size(); ++i) {
        const std::string place = at(name, i);
        const Fields function(Fields(tools[i], place).need("function", "an object"), place + ".function");
        if (function.text("name").empty()) (void)function.need("name", "a function's name");
    }
    request.tools = tools;
}

void read_tool_choice(const Fields& fields, const char* name, const Json& choice, Request& request) {
    if (choice == "auto") return;
    if (choice.is_string() && choice != "none" && choice != "required")
        fields.refuse(name, "auto, none, required or an object that names a tool", choice);
    if (choice == "none") {
        request.tools = nullptr;
        return;
    }
    if (request.tools.is_null()) fields.refuse(name, "tools beside it", choice);
    // A format is of what is said, which a call is not; another form would be of the call.
    if (request.form != Form::any && request.form_field != "response_format" && request.form_field != "text.format" &&
        !request.form_field.starts_with("output_"))
        refuse(name, "no call that must be beside " + request.form_field, "one");
    request.form = Form::tool;
    if (choice == "required") return;
    request.tool = Fields(Fields(choice, name).need("function", "a function"), "tool_choice.function").text("name");
    const bool known = std::any_of(request.tools.begin(), request.tools.end(),
                                   [&](const Json& tool) { return tool["function"]["name"] == request.tool; });
    if (!known)
        throw RequestError(400, "tool_choice.function.name: expected one of tools, got " + request.tool.substr(0, 60),
                           name);
}

/// A response's functions, as chats have them. Other tools would run on the server, which has none.
void read_function_tools(const Fields& fields, const char* name, const Json& tools, Request& request) {
    if (!tools.is_array()) fields.refuse(name, "an array", tools);
    Json functions = Json::array();
    for (std::size_t i = 0; i < tools.size(); ++i) {
        need_function(Fields(tools[i], at(name, i)));
        Json function = tools[i];
        function.erase("type");
        functions.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    read_tools(fields, name, functions, request);
}

void read_function_choice(const Fields& fields, const char* name, const Json& choice, Request& request) {
    if (!choice.is_object()) return read_tool_choice(fields, name, choice, request);
    const Fields named(choice, name);
    need_function(named);
    read_tool_choice(fields, name, {{"type", "function"}, {"function", {{"name", named.text("name")}}}}, request);
}

/// Anthropic's tools, as chats have them. Its own would run on the server, which has none.
void read_custom_tools(const Fields& fields, const char* name, const Json& tools, Request& request) {
    if (!tools.is_array()) fields.refuse(name, "an array", tools);
    Json functions = Json::array();
    for (std::size_t i = 0; i < tools.size(); ++i) {
        const Fields tool(tools[i], at(name, i));
        (void)tool.one_of("type", {"custom"});
        Json function = {{"name", tool.text("name")}};
        if (tool.find("description")) function["description"] = tool.text("description");
        function["parameters"] = tool.need("input_schema", "a JSON schema");
        functions.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    if (!functions.empty()) read_tools(fields, name, functions, request);
}

void read_custom_choice(const Fields& fields, const char* name, const Json& choice, Request& request) {
    const Fields chosen(choice, name);
    const std::string type = chosen.one_of("type", {"auto", "any", "tool", "none"});
    request.calls_once = chosen.flag("disable_parallel_tool_use", false);
    if (type != "tool") return read_tool_choice(fields, name, type == "any" ? "required" : type, request);
    read_tool_choice(fields, name, {{"type", "function"}, {"function", {{"name", chosen.text("name")}}}}, request);
}

}  // namespace fovea::serve
