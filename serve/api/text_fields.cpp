// The fields of requests for texts, as rows: OpenAI's three kinds, Ollama's two with their options, and the lines of `run --batch`.
#include "serve/api/text_fields.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace fovea::serve {
namespace {

constexpr std::size_t kMostPlaces = 1024;  // of a choice

// ---- how tokens are chosen -------------------------------------------------------------------------------------------

/// 0 and -1 mean `neutral`.
std::uint32_t count_of(const Fields& fields, const char* name, std::uint32_t neutral, std::int64_t most) {
    const std::int64_t count = fields.whole(name, 0, -1, std::min<std::int64_t>(most, 1 << 30));
    return count > 0 ? static_cast<std::uint32_t>(count) : neutral;
}

void read_seed(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::int64_t seed = fields.whole(name, 0, INT64_MIN, INT64_MAX);
    request.random_seed = seed == -1;
    request.sampler.seed = static_cast<std::uint64_t>(seed);
}

/// {"15043": 2.5}: what each token's logit gets.
void read_biases(const Fields&, const char* name, const Json& given, Request& request) {
    const Fields fields(given, name);
    if (given.size() > kMostBiases) fields.refuse("", "at most " + std::to_string(kMostBiases) + " tokens", given);
    for (const auto& [key, value] : given.items()) {
        Token id = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (error != std::errc() || end != key.data() + key.size()) refuse(name, "token ids", key.substr(0, 40));
        request.penalized.biases.push_back({id, static_cast<float>(fields.real(key.c_str(), 0, -100, 100))});
    }
}

void read_recent(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::int64_t n_recent = fields.whole(name, 0, -1, 1 << 30);
    request.penalized.n_recent = n_recent < 0 ? 0xffffffffu : static_cast<std::uint32_t>(n_recent);
    request.penalized.n_counted = request.penalized.n_recent;
    request.said.repeat_last_n = true;
}

// ---- where an answer ends --------------------------------------------------------------------------------------------

void read_length(const Fields& fields, const char* name, const Json& value, Request& request) {
    if (request.is_chat && std::string_view(name) == "max_tokens" && fields.find("max_completion_tokens")) return;
    request.n_new = value == -1 ? kMostNew  // as llama.cpp's server has it
                                : static_cast<std::uint32_t>(fields.whole(name, 0, request.is_chat ? 1 : 0, kMostNew));
}

void read_num_predict(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::int64_t n_new = fields.whole(name, -1, -2, kMostNew);
    if (n_new >= 0) request.n_new = static_cast<std::uint32_t>(n_new);
}

void read_stops(const Fields& fields, const char* name, const Json& stop, Request& request) {
    std::size_t n_bytes = 0;
    for (const Json& text : stop.is_array() ? stop : Json::array({stop})) {
        if (!text.is_string()) fields.refuse(name, "a string or an array of strings", text);
        if (text.get_ref<const std::string&>().empty()) continue;
        request.stop.push_back(text.get<std::string>());
        n_bytes += request.stop.back().size();
    }
    if (request.stop.size() > kMostStops || n_bytes > kMostStopBytes)
        refuse(fields.path(name),
               "at most " + std::to_string(kMostStops) + " strings of " + std::to_string(kMostStopBytes) +
                   " bytes together",
               "more");
}

// ---- what an answer must be: fields of OpenAI's and Ollama's, llama.cpp's server and vLLM's ---------------------------------

void read_response_format(const Fields&, const char* name, const Json& format, Request& request) {
    const Fields f(format, name);
    const std::string type = f.one_of("type", {"text", "json_object", "json_schema"});
    if (type == "text") return;
    request.form = type == "json_schema" || f.find("schema") ? Form::schema : Form::json;
    if (type == "json_schema")
        request.schema = Fields(f.need("json_schema", "an object with a schema"), "response_format.json_schema")
                             .need("schema", "a JSON schema");
    else if (const Json* schema = f.find("schema"))  // as llama.cpp's server has it
        request.schema = *schema;
}

void read_text_format(const Fields&, const char* name, const Json& text, Request& request) {
    const Json* format = Fields(text, name).find("format");
    if (!format) return;
    const Fields f(*format, "text.format");
    const std::string type = f.one_of("type", {"text", "json_object", "json_schema"});
    if (type == "text") return;
    request.form = type == "json_schema" ? Form::schema : Form::json;
    request.form_field = "text.format";
    if (type == "json_schema") request.schema = f.need("schema", "a JSON schema");
}

void read_output_format(const char* name, const Json& format, Request& request) {
    const Fields f(format, name);
    (void)f.one_of("type", {"json_schema"});
    request.form = Form::schema;
    request.form_field = name;
    request.schema = f.need("schema", "a JSON schema");
}

void read_format(const Fields& fields, const char* name, const Json& format, Request& request) {
    if (format == "") return;
    if (format != "json" && !format.is_object()) fields.refuse(name, "\"json\" or a JSON schema", format);
    request.form_field = name;
    request.form = format == "json" ? Form::json : Form::schema;
    if (format.is_object()) request.schema = format;
}

/// The request's form, unless another field has said one.
void take_form(const Fields& fields, const char* name, Form form, Request& request) {
    if (request.form != Form::any)
        refuse(fields.path(name), "one form of the answer (response_format, json_schema, grammar or regex)",
               "another beside it");
    request.form = form;
    request.form_field = fields.path(name);
}

/// A schema, or JSON of one in a string.
void read_schema(const Fields& fields, const char* name, const Json& given, Request& request) {
    take_form(fields, name, Form::schema, request);
    try {
        request.schema = given.is_string() ? read_body(given.get_ref<const std::string&>()) : given;
    } catch (const RequestError&) {
        fields.refuse(name, "a JSON schema", given);
    }
}

void read_grammar(const Fields& fields, const char* name, const Json&, Request& request) {
    std::string grammar = fields.text(name);
    if (grammar.empty()) return;
    take_form(fields, name, Form::grammar, request);
    request.grammar = std::move(grammar);
}

void read_regex(const Fields& fields, const char* name, const Json&, Request& request) {
    take_form(fields, name, Form::regex, request);
    request.grammar = fields.text(name);
}

/// Texts, which become a grammar's alternatives.
void read_choice(const Fields& fields, const char* name, const Json& choices, Request& request) {
    take_form(fields, name, Form::grammar, request);
    if (!choices.is_array() || choices.empty() || choices.size() > kMostPlaces)
        fields.refuse(name, "an array of 1 to " + std::to_string(kMostPlaces) + " texts", choices);
    for (const Json& choice : choices) {
        if (!choice.is_string()) fields.refuse(name, "texts", choice);
        request.grammar += request.grammar.empty() ? "root ::= \"" : " | \"";
        for (const char c : choice.get_ref<const std::string&>()) {
            char spelled[8];
            std::snprintf(spelled, sizeof spelled, "\\x%02X", static_cast<unsigned char>(c));
            const bool is_special = c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
            request.grammar += is_special ? spelled : std::string(1, c);
        }
        request.grammar += '"';
    }
}

// ---- conversations and their templates -------------------------------------------------------------------------------

/// A prompt of ids, as --tokens has them.
void read_tokens(const Fields&, const char* name, const Json& value, Request& request) {
    const auto is_id = [](const Json& id) { return id.is_number_unsigned(); };
    if (!value.is_array() || value.empty() || !std::all_of(value.begin(), value.end(), is_id))
        refuse(name, "a list of token ids", "another value");
    request.prompts.push_back({{}, read_token_ids(value, name), true});
}

/// Without a message, or with an empty prompt, the model is to be loaded.
void read_ollama_messages(const Fields&, const char*, const Json& value, Request& request) {
    if (value.is_array() && value.empty()) return;
    request.only_loads = false;
    request.messages = read_messages(value);
}

void read_ollama_prompt(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::string prompt = fields.text(name);
    request.only_loads = prompt.empty();
    if (request.is_chat)
        request.messages.push_back({{"role", "user"}, {"content", prompt}});
    else
        request.prompts.push_back({prompt, {}, false});
}

void read_system(const Fields& fields, const char* name, const Json&, Request& request) {
    if (const std::string text = fields.text(name); !text.empty())
        request.messages.push_back({{"role", "system"}, {"content", text}});
}

void need_function(const Fields& tool) {
    if (const std::string type = tool.text("type"); type != "function")
        refuse(tool.path("type"), "function", type.substr(0, 40), "unsupported_parameter");
}

/// Functions with names, at most 128.
void read_tools(const Fields& fields, const char* name, const Json& tools, Request& request) {
    if (tools.empty()) return;
    if (!tools.is_array() || tools.size() > 128) fields.refuse(name, "an array of at most 128", tools);
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
    if (type != "tool") return read_tool_choice(fields, name, type == "any" ? "required" : type, request);
    read_tool_choice(fields, name, {{"type", "function"}, {"function", {{"name", chosen.text("name")}}}}, request);
}

/// How much the model is to reason.
void read_effort(const Fields& fields, const char* name, const Json&, Request& request) {
    if (fields.text(name).empty()) return;
    const std::string effort = fields.one_of(name, {"none", "minimal", "low", "medium", "high", "xhigh"});
    request.template_extra.emplace("reasoning_effort", effort);
    if (effort == "none") request.template_extra.emplace("enable_thinking", false);
}

void read_reasoning(const Fields&, const char* name, const Json& reasoning, Request& request) {
    const Fields members(reasoning, name);
    if (const Json* effort = members.find("effort")) read_effort(members, "effort", *effort, request);
}

/// Whether the model is to reason before it answers, and how much; what it thought is a field of its own.
void read_think(const Fields& fields, const char* name, const Json& think, Request& request) {
    if (!think.is_boolean() && think != "low" && think != "medium" && think != "high")
        fields.refuse(name, "true, false, \"low\", \"medium\" or \"high\"", think);
    request.template_extra[think.is_boolean() ? "enable_thinking" : "reasoning_effort"] = think;
}

// ---- what comes beside a text ----------------------------------------------------------------------------------------

void read_included(const Fields& fields, const char* name, const Json& include, Request&) {
    if (include.is_array() &&
        std::find(include.begin(), include.end(), "message.output_text.logprobs") != include.end())
        fields.refuse(name, "no logprobs", "message.output_text.logprobs");
}

void check_id(const Fields&, const char* name, const Json& id, Request&) {
    if (!id.is_string() && !id.is_number()) refuse(name, "a text or a number", "another value");
}

using Row = FieldRow<Request>;
using Only = Row::Only;
// A field's place in the request; and what reads a field that has none.
#define IN(place) \
    [](Request & request) -> auto& { return request.place; }
#define AS(...)                                                                                                      \
    [](const Fields& fields [[maybe_unused]], const char* name [[maybe_unused]], const Json& value [[maybe_unused]], \
       Request& request [[maybe_unused]]) { __VA_ARGS__; }

/// In the order in which they are read: of several wrong ones the first is refused.
const Row kRows[] = {
    {"model", kAll, IN(model)},
    // What asks for state, for tools of the server's or for another way to compute.
    {"previous_response_id", kResponse, Only{""}},
    {"conversation", kResponse, Only{""}},
    {"prompt", kResponse, Only{""}},
    {"background", kResponse, Only{false}},
    {"truncation", kResponse, Only{"disabled"}},
    {"n", kResponse, Only{1}},
    {"top_logprobs", kResponse, Only{0}},
    {"include", kResponse, read_included},
    {"store", kResponse, AS((void)fields.flag(name, false))},
    {"instructions", kResponse, read_system},
    {"input", kResponse, read_items},
    {"raw", kOllamaGenerate, AS(request.is_chat = !fields.flag(name, false))},
    {"system", kOllamaGenerate, read_system},
    {"prompt", kOllamaGenerate, read_ollama_prompt},
    {"suffix", kOllamaGenerate, Only{""}},
    {"template", kOllamaGenerate, Only{""}},
    {"images", kOllamaGenerate, Only{Json::array()}},
    {"context", kOllamaGenerate, Only{Json::array()}},
    {"prompt", kCompletion | kBatch, AS(request.prompts = read_prompts(value, name, kMostChoices))},
    {"tokens", kBatch | kLine, read_tokens},
    {"messages", kChat | kBatch, AS(request.messages = read_messages(value))},
    {"messages", kOllamaChat, read_ollama_messages},
    {"system", kMessages, AS(request.messages.push_back({{"role", "system"}, {"content", read_content(value, name)}}))},
    {"messages", kMessages, read_turns},
    {"mcp_servers", kMessages, Only{Json::array()}},
    {"id", kBatch | kLine, check_id},
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, flag, help, openai, openai_default, ollama, \
                           ollama_default, key)                                                            \
    {openai, kSampled, IN(sampler.field), least, most, openai_default},                                    \
        {ollama, kOllamaOptions, IN(sampler.field), least, most, ollama_default},
#define FOVEA_SAMPLER_COUNT(field, neutral, most, ...) \
    {#field, kSampled | kOllamaOptions, AS(request.sampler.field = count_of(fields, name, neutral, most))},
#define FOVEA_SAMPLER_SEED(field) {#field, kOpenAi | kBatch | kOllamaOptions, read_seed},
#include "fovea/sampler_options.inc"
    {"mirostat", kOpenAi | kOllamaOptions, AS(if (value == 1) fields.refuse(name, "0 or 2", value))},
    {"ignore_eos", kOpenAi | kBatch, AS(if (fields.flag(name, false)) request.sampler.min_tokens = kNeverEnds)},
    {"dry_penalty_last_n", kOpenAi, Only{-1}},
    {"dry_sequence_breakers", kOpenAi, Only{Json::array({"\n", ":", "\"", "*"})}},
    {"repeat_last_n", kOllamaOptions, read_recent},
    {"logit_bias", kOpenAi | kBatch, read_biases},
    {"max_tokens", kChat | kCompletion | kBatch, read_length},
    {"max_completion_tokens", kChat, read_length},
    {"max_output_tokens", kResponse,
     AS(request.n_new = static_cast<std::uint32_t>(fields.whole(name, 0, 1, kMostNew)))},
    {"num_predict", kOllamaOptions, read_num_predict},
    {"max_tokens", kMessages, AS(request.n_new = static_cast<std::uint32_t>(fields.whole(name, 0, 1, kMostNew)))},
    {"stop_sequences", kMessages, read_stops},
    {"stop", kOpenAi | kBatch | kOllamaOptions, read_stops},
    {"n", kChat | kCompletion, IN(n_each), 1, kMostChoices},
    {"stream", kOpenAi | kMessages | kOllamaChat | kOllamaGenerate, IN(stream)},
    {"stream_options", kChat | kCompletion, AS(request.with_usage = Fields(value, name).flag("include_usage", false))},
    {"echo", kCompletion, IN(echo)},
    {"logprobs", kCompletion, AS(request.n_likeliest = static_cast<int>(fields.whole(name, -1, 0, kMostLikeliest)))},
    {"logprobs", kChat,
     AS(request.n_likeliest =
            fields.flag(name, false) ? static_cast<int>(fields.whole("top_logprobs", 0, 0, kMostLikeliest)) : -1)},
    {"suffix", kCompletion, Only{""}},
    {"from", kCompletion | kBatch, IN(languages.from)},
    {"to", kCompletion | kBatch, IN(languages.to)},
    {"response_format", kChat | kCompletion | kBatch, read_response_format},
    {"text", kResponse, read_text_format},
    {"format", kOllamaChat | kOllamaGenerate, read_format},
    {"output_format", kMessages, AS(read_output_format(name, value, request))},
    {"output_config", kMessages,
     AS(if (const Json* format = Fields(value, name).find("format"))
            read_output_format("output_config.format", *format, request))},
    {"json_schema", kOpenAi, read_schema},
    {"grammar", kSampled, read_grammar},
    {"regex", kSampled, read_regex},
    {"guided_json", kOpenAi, read_schema},
    {"guided_grammar", kOpenAi, read_grammar},
    {"guided_regex", kOpenAi, read_regex},
    {"guided_choice", kOpenAi, read_choice},
    {"guided_whitespace_pattern", kOpenAi, Only{""}},
    {"structured_outputs", kOpenAi, AS(read_text_fields(Fields(value, name), kStructured, request))},
    {"json", kStructured, read_schema},
    {"grammar", kStructured, read_grammar},
    {"regex", kStructured, read_regex},
    {"choice", kStructured, read_choice},
    {"structural_tag", kStructured, Only{""}},
    {"whitespace_pattern", kStructured, Only{""}},
    {"json_object", kStructured, Only{false}},
    {"tools", kChat | kOllamaChat, read_tools},
    {"tools", kResponse, read_function_tools},
    {"tools", kMessages, read_custom_tools},
    {"tool_choice", kMessages, read_custom_choice},
    {"tool_choice", kChat, read_tool_choice},
    {"tool_choice", kResponse, read_function_choice},
    {"chat_template_kwargs", kChat | kResponse | kBatch, AS((void)Fields(value, name); request.template_extra = value)},
    {"reasoning_format", kChat | kResponse,
     AS(request.parts_thought = fields.one_of(name, {"none", "auto", "deepseek"}) != "none")},
    {"reasoning_effort", kChat, read_effort},
    {"reasoning", kResponse, read_reasoning},
    {"thinking", kMessages,
     AS(const std::string type = Fields(value, name).one_of("type", {"adaptive", "enabled", "disabled"});
        if (type != "adaptive") request.template_extra["enable_thinking"] = type == "enabled")},
    {"think", kOllamaChat | kOllamaGenerate, read_think},
};
#undef IN
#undef AS

}  // namespace

void read_text_fields(const Fields& fields, unsigned of, Request& request) {
    read_rows<Request>(fields, kRows, of, request);
    if (!(of & (kSampled | kOllamaOptions))) return;
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, flag, help, openai, openai_default, ollama, ...) \
    request.said.field = fields.find(of & kOllamaOptions ? ollama : openai) != nullptr;
#define FOVEA_SAMPLER_COUNT(field, ...) request.said.field = fields.find(#field) != nullptr;
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_COUNT
#include "fovea/sampler_options.inc"
}

std::vector<std::string> text_field_names(unsigned of) {
    std::vector<std::string> names;
    for (const Row& row : kRows)
        if (row.of & of) names.emplace_back(row.name);
    return names;
}

}  // namespace fovea::serve
