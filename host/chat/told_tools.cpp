#include "host/chat/told_tools.h"

#include <algorithm>
#include <utility>

#include "host/chat/value.h"

namespace fovea {
namespace {

constexpr ChatTemplateLimits kProbeLimits{.n_steps = 200'000, .n_bytes = 4 << 20};

constexpr const char* kSystem = "fovea_system";
constexpr const char* kTool = "fovea_tool";
constexpr const char* kArgument = "fovea_argument";
constexpr const char* kResult = "fovea_result";

Json message(const char* role, Json content) { return {{"role", role}, {"content", std::move(content)}}; }

/// A function without parameters, in OpenAI's shape.
Json probe_tool() {
    return {{"type", "function"},
            {"function",
             {{"name", kTool},
              {"description", "a function"},
              {"parameters", {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}}}}}};
}

Json probe_call() {
    Json called = message("assistant", "");
    called["tool_calls"] = Json::array({Json{
        {"id", "abcdefghi"}, {"type", "function"}, {"function", {{"name", kTool}, {"arguments", {{kArgument, 1}}}}}}});
    return called;
}

Json probe_result() {
    Json result = message("tool", kResult);
    result["tool_call_id"] = "abcdefghi";
    result["name"] = kTool;
    return result;
}

/// As templates write it: with a space behind each comma and colon.
std::string json_words(chat::Budget& budget, const Json& value) {
    return chat::to_json(budget, chat::from_json(budget, value), {}).text();
}

bool has(std::string_view text, const char* part) { return text.find(part) != text.npos; }

bool is_result(const Json& message) {
    const Json role = message.value("role", Json());
    return role == "tool" || role == "function";
}

/// Text behind or before a message's content, which may be parts.
void add_text(Json& content, const std::string& text, bool in_front) {
    if (content.is_array())
        content.insert(in_front ? content.begin() : content.end(), Json{{"type", "text"}, {"text", text}});
    else if (!content.is_string() || content.get_ref<const std::string&>().empty())
        content = text;
    else
        content = in_front ? text + "\n\n" + content.get<std::string>() : content.get<std::string>() + "\n\n" + text;
}

std::string call_text(const CallWords& words, const std::string& name, const std::string& arguments) {
    return words.before + name + words.between + arguments + words.after + words.end;
}

/// The tools and how they are called.
std::string tools_text(chat::Budget& budget, const Json& tools, const CallWords& words) {
    std::string text = "You may call functions. Within <tools> each line describes one of them as JSON:\n<tools>\n";
    for (const Json& tool : tools) text += json_words(budget, tool) + '\n';
    return text +
           "</tools>\n"
           "To call a function, answer with its name and its arguments, an object that fits its parameters, in this "
           "form:\n" +
           call_text(words, "NAME", "{ARGUMENTS}") +
           "\nThe results come back within <tool_response>. If no function helps, answer in words.";
}

/// Calls behind what an answer says.
void write_calls(chat::Budget& budget, Json& answer, const Dialect& dialect) {
    const Json calls = answer.value("tool_calls", Json());
    answer.erase("tool_calls");
    if (!calls.is_array()) return;
    std::string text;
    for (const Json& call : calls) {
        const Json function = call.is_object() ? call.value("function", Json()) : Json();
        if (!function.is_object() || !function.value("name", Json()).is_string()) continue;
        const Json arguments = function.value("arguments", Json::object());
        const std::string name = json_text(function["name"]);
        text += (text.empty() ? "" : "\n") +
                call_text(call_words(dialect, false), name.substr(1, name.size() - 2),
                          arguments.is_string() ? arguments.get<std::string>() : json_words(budget, arguments));
    }
    if (!text.empty()) add_text(answer["content"], text, false);
}

std::string result_text(const Json& result) {
    const Json content = result.value("content", Json());
    std::string text = content.is_string() ? content.get<std::string>() : "";
    for (const Json& part : content.is_array() ? content : Json::array())
        if (part.is_object() && part.value("text", Json()).is_string()) text += part["text"].get<std::string>();
    return "<tool_response>\n" + text + "\n</tool_response>";
}

}  // namespace

ShownParts shown_parts(const ChatTemplate& chat_template, std::string_view text, ChatInput input) {
    enum class Probe { refused, shown, hidden };
    input.limits = kProbeLimits;
    input.now = 0;
    for (std::string* mark : {&input.bos_token, &input.eos_token})  // templates may add texts to them
        if (mark->empty()) *mark = "<>";
    const auto probe = [&](Json messages, bool with_tools, std::initializer_list<const char*> parts) {
        input.messages = std::move(messages);
        input.tools = with_tools ? Json::array({probe_tool()}) : Json();
        try {
            const TaintedText prompt = chat_template.render(input);
            const auto shows = [&](const char* part) { return has(prompt.text(), part); };
            return std::all_of(parts.begin(), parts.end(), shows) ? Probe::shown : Probe::hidden;
        } catch (const ChatTemplateError&) {
            return Probe::refused;
        }
    };
    const Json user = message("user", "hello"), system = message("system", kSystem);
    ShownParts shown;
    shown.system = probe(Json::array({system, user}), false, {kSystem}) == Probe::shown;
    if (!has(text, "tool")) return {.tools = false, .calls = false, .results = false, .system = shown.system};
    Probe tools = probe(Json::array({user}), true, {kTool});
    if (tools != Probe::shown) {
        const Probe beside_system = probe(Json::array({system, user}), true, {kTool});
        if (tools == Probe::refused || beside_system == Probe::shown) tools = beside_system;
    }
    shown.tools = tools != Probe::hidden;
    const Json called = Json::array({user, probe_call(), probe_result()});
    // One that goes through calls shows of them what it wants.
    shown.calls = has(text, "tool_calls") || probe(called, shown.tools, {kArgument}) == Probe::shown;
    shown.results = probe(called, shown.tools, {kResult}) == Probe::shown;
    return shown;
}

Json tell_tools(const Json& messages, const Json& tools, const Dialect& dialect, const ShownParts& shown,
                const ChatTemplateLimits& limits) {
    chat::Budget budget(limits);
    Json told = Json::array();
    bool is_open = false;  // the last message is of results, which go on
    for (const Json& given : messages) {
        Json one = given;
        const Json role = one.is_object() ? one.value("role", Json()) : Json();
        if (role == "assistant" && !shown.calls) write_calls(budget, one, dialect);
        if (one.is_object() && is_result(one) && !shown.results) {
            if (!is_open) told.push_back(message("user", ""));
            Json& content = told.back()["content"];
            content = content.get<std::string>() + (is_open ? "\n" : "") + result_text(one);
            is_open = true;
            continue;
        }
        if (is_open && role == "user" && one.value("content", Json()).is_string())
            add_text(told.back()["content"], one["content"].get<std::string>(), false);
        else
            told.push_back(std::move(one));
        is_open = false;
    }
    if (!tools.is_array() || tools.empty()) return told;
    const std::string text = tools_text(budget, tools, call_words(dialect, true));
    const char* role = shown.system ? "system" : "user";
    auto at = std::find_if(told.begin(), told.end(),
                           [&](const Json& one) { return one.is_object() && one.value("role", Json()) == role; });
    if (at == told.end()) at = told.insert(told.begin(), message(role, ""));
    add_text((*at)["content"], text, !shown.system);
    return told;
}

}  // namespace fovea
