// POST /v1/responses: items instead of messages, of which a conversation is made for the model's template.
#include "serve/api/response_items.h"

#include "serve/api/fields.h"
#include "serve/api/text_answer.h"

namespace fovea::serve {
namespace {

std::string at(const char* name, std::size_t i) { return std::string(name) + '[' + std::to_string(i) + ']'; }

/// The message that calls belong to: the one before them, where it is the assistant's.
Json& assistant(Json& messages) {
    if (messages.empty() || messages.back()["role"] != "assistant")
        messages.push_back({{"role", "assistant"}, {"content", ""}});
    return messages.back();
}

void add_message(const Fields& item, Json& messages) {
    const std::string role = item.text("role");
    if (role.empty()) (void)item.need("role", "a role such as user");
    std::string text = read_content(item.need("content", "a string or an array of parts"), item.path("content"));
    if (role != "assistant") {
        messages.push_back({{"role", role}, {"content", std::move(text)}});
        return;
    }
    // Reasoning comes before what was said, and calls come behind it.
    const bool goes_on = !messages.empty() && messages.back().contains("reasoning_content") &&
                         messages.back()["content"] == "" && !messages.back().contains("tool_calls");
    if (!goes_on) messages.push_back({{"role", "assistant"}});
    messages.back()["content"] = std::move(text);
}

void add_call(const Fields& item, Json& messages) {
    if (item.text("name").empty()) (void)item.need("name", "a function's name");
    Json call = {{"id", item.text("call_id")},
                 {"type", "function"},
                 {"function", {{"name", item.text("name")}, {"arguments", read_arguments(item.text("arguments"))}}}};
    assistant(messages)["tool_calls"].push_back(std::move(call));
}

void add_output(const Fields& item, Json& messages) {
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", item.text("call_id")},
                        {"content", read_content(item.need("output", "a string"), item.path("output"))}});
}

void add_reasoning(const Fields& item, Json& messages) {
    std::string text;
    for (const char* name : {"summary", "content"}) {
        const Json* parts = item.find(name);
        if (parts && !parts->is_array()) item.refuse(name, "an array of parts", *parts);
        if (parts && !parts->empty()) text = read_content(*parts, item.path(name));  // content is more than its summary
    }
    if (text.empty()) return;
    messages.push_back({{"role", "assistant"}, {"content", ""}, {"reasoning_content", std::move(text)}});
}

Json read_items(const Fields& fields) {
    Json messages = Json::array();
    if (const std::string text = fields.text("instructions"); !text.empty())
        messages.push_back({{"role", "system"}, {"content", text}});
    const Json& input = fields.need("input", "a text or an array of items");
    if (input.is_string()) {
        messages.push_back({{"role", "user"}, {"content", input}});
        return messages;
    }
    if (!input.is_array() || input.empty() || input.size() > kMostMessages)
        fields.refuse("input", ("a text or an array of 1 to " + std::to_string(kMostMessages) + " items").c_str(),
                      input);
    for (std::size_t i = 0; i < input.size(); ++i) {
        const Fields item(input[i], at("input", i));
        const std::string type = item.text("type", "message");
        if (type == "message")
            add_message(item, messages);
        else if (type == "function_call")
            add_call(item, messages);
        else if (type == "function_call_output")
            add_output(item, messages);
        else if (type == "reasoning")
            add_reasoning(item, messages);
        else
            throw RequestError(400,
                               item.path("type") +
                                   ": expected message, function_call, function_call_output or reasoning, got " +
                                   type.substr(0, 40),
                               item.path("type"));
    }
    return messages;
}

/// Functions as chats have them. Other tools would run on the server, which has none.
Json read_functions(const Fields& fields) {
    Json chat = Json::object();
    if (const Json* tools = fields.find("tools")) {
        if (!tools->is_array()) fields.refuse("tools", "an array", *tools);
        chat["tools"] = Json::array();
        for (std::size_t i = 0; i < tools->size(); ++i) {
            const Fields tool((*tools)[i], at("tools", i));
            if (const std::string type = tool.text("type"); type != "function")
                throw RequestError(400, tool.path("type") + ": expected function, got " + type.substr(0, 40),
                                   tool.path("type"), "unsupported_parameter");
            Json function = (*tools)[i];
            function.erase("type");
            chat["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
        }
    }
    const Json* choice = fields.find("tool_choice");
    if (choice && choice->is_object()) {
        const Fields named(*choice, "tool_choice");
        if (const std::string type = named.text("type"); type != "function")
            throw RequestError(400, "tool_choice.type: expected function, got " + type.substr(0, 40),
                               "tool_choice.type", "unsupported_parameter");
        chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", named.text("name")}}}};
    } else if (choice) {
        chat["tool_choice"] = *choice;
    }
    return chat;
}

void read_text_format(const Fields& fields, Request& request) {
    const Json* text = fields.find("text");
    const Json* format = text ? Fields(*text, "text").find("format") : nullptr;
    if (!format) return;
    const Fields f(*format, "text.format");
    const std::string type = f.text("type", "text");
    if (type == "json_object") {
        request.form = Form::json;
        request.form_field = "text.format";
    } else if (type == "json_schema") {
        request.form = Form::schema;
        request.form_field = "text.format";
        request.schema = f.need("schema", "a JSON schema");
    } else if (type != "text") {
        throw RequestError(400,
                           "text.format.type: expected text, json_object or json_schema, got " + type.substr(0, 40),
                           "text.format.type");
    }
}

/// What asks for state, for tools of the server's or for another way to compute.
void refuse_others(const Fields& fields) {
    for (const char* name : {"previous_response_id", "conversation", "prompt"}) fields.only(name, "");
    fields.only("background", false);
    fields.only("truncation", "disabled");
    fields.only("n", 1);
    fields.only("top_logprobs", 0);
    const Json* include = fields.find("include");
    if (include && include->is_array())
        for (const Json& one : *include)
            if (one == "message.output_text.logprobs") fields.refuse("include", "no logprobs", one);
}

/// The settings that an answer repeats.
Json echo_of(const Fields& fields) {
    Json echo = Json::object();
    const auto keep = [&](const char* name, Json otherwise) {
        const Json* value = fields.find(name);
        echo[name] = value ? *value : std::move(otherwise);
    };
    keep("instructions", nullptr);
    keep("max_output_tokens", nullptr);
    keep("metadata", Json::object());
    keep("parallel_tool_calls", true);
    keep("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
    keep("text", {{"format", {{"type", "text"}}}});
    keep("tool_choice", "auto");
    keep("tools", Json::array());
    keep("user", nullptr);
    for (const SamplingField& field : kSamplingFields) keep(field.openai, field.openai_default);
    return echo;
}

}  // namespace

Request read_response(const Fields& fields) {
    Request request;
    request.is_chat = true;
    request.model = fields.text("model");
    refuse_others(fields);
    (void)fields.flag("store", false);
    request.messages = read_items(fields);
    read_sampling(fields, request);
    if (fields.find("max_output_tokens"))
        request.n_new = static_cast<std::uint32_t>(fields.whole("max_output_tokens", 0, 1, kMostNew));
    request.stop = read_stops(fields);
    request.stream = fields.flag("stream", false);
    read_text_format(fields, request);
    read_forms(fields, request);
    const Json functions = read_functions(fields);
    read_tools(Fields(functions), request);
    read_template_options(fields, request);
    if (const Json* reasoning = fields.find("reasoning"))
        read_effort(Fields(*reasoning, "reasoning"), "effort", request);
    return request;
}

namespace {

class ResponseAnswer final : public TextAnswer {
public:
    /// `echoed`: settings of the request, which the answer repeats.
    ResponseAnswer(TextAnswerOptions options, Json echoed)
        : TextAnswer(in_pieces(std::move(options))),
          items_(options_.id, options_.model, options_.created, std::move(echoed)) {}
    [[nodiscard]] std::string begin() override { return items_.opening(); }
    [[nodiscard]] std::string end() override { return failure().status ? items_.fail(failure()) : ""; }
    [[nodiscard]] std::string whole() const override { return written(items_.whole()); }

private:
    /// The items are made of the pieces of whole answers, too.
    static TextAnswerOptions in_pieces(TextAnswerOptions options) {
        options.stream = true;
        return options;
    }
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;

    ResponseItems items_;
};

std::string ResponseAnswer::piece(Written& written, const Event& event, const Part& part) {
    const std::vector<ToolCall>& calls = written.calls.calls();
    std::string out = items_.think(part.thought);
    std::string_view rest = part.text;
    std::size_t at = written.text.size();
    while (written.n_calls_shown < calls.size()) {  // each where it stands in the text, however that comes
        const ToolCall& call = calls[written.n_calls_shown++];
        const std::size_t n = std::min(call.at - std::min(call.at, at), rest.size());
        out += items_.say(rest.substr(0, n));
        out += items_.call(call);
        rest.remove_prefix(n);
        at += n;
    }
    out += items_.say(rest);
    if (!event.ended) return out;
    Json used = usage();
    return out + items_.finish(event.finish, {{"input_tokens", used["prompt_tokens"]},
                                              {"input_tokens_details", used["prompt_tokens_details"]},
                                              {"output_tokens", used["completion_tokens"]},
                                              {"output_tokens_details", {{"reasoning_tokens", 0}}},
                                              {"total_tokens", used["total_tokens"]}});
}

}  // namespace

Reply endpoints::respond(Call& call, Service& service) {
    const Json body = read_json(call.body);
    const Fields fields(body);
    const Request request = read_response(fields);
    return text_reply<ResponseAnswer>(call, service.find(request.model, Work::text), request, kAsManyAsFit,
                                      echo_of(fields));
}

}  // namespace fovea::serve
