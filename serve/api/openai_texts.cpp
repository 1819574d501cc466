// What OpenAI's requests for texts have in common.
#include <algorithm>
#include <charconv>

#include "serve/api/fields.h"

namespace fovea::serve {
namespace {

void read_response_format(const Fields& fields, Request& request) {
    const Json* format = fields.find("response_format");
    if (!format) return;
    const Fields f(*format, "response_format");
    const std::string type = f.text("type", "text");
    if (type == "text") return;
    if (type == "json_object") {
        request.form = Form::json;
        if (const Json* schema = f.find("schema")) {  // as llama.cpp's server has it
            request.form = Form::schema;
            request.schema = *schema;
        }
    } else if (type == "json_schema") {
        const Fields schema(f.need("json_schema", "an object with a schema"), "response_format.json_schema");
        request.form = Form::schema;
        request.schema = schema.need("schema", "a JSON schema");
    } else {
        throw RequestError(400,
                           "response_format.type: expected text, json_object or json_schema, got " + type.substr(0, 40),
                           "response_format.type");
    }
}

/// {"15043": 2.5}: what each token's logit gets.
std::vector<LogitBias> read_biases(const Json& given) {
    const Fields fields(given, "logit_bias");
    if (given.size() > kMostBiases)
        fields.refuse("", ("at most " + std::to_string(kMostBiases) + " tokens").c_str(), given);
    std::vector<LogitBias> biases;
    for (const auto& [key, value] : given.items()) {
        Token id = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (error != std::errc() || end != key.data() + key.size())
            throw RequestError(400, "logit_bias: expected token ids, got " + key.substr(0, 40), "logit_bias");
        biases.push_back({id, static_cast<float>(fields.real(key.c_str(), 0, -100, 100))});
    }
    return biases;
}

}  // namespace

/// A text, an array of texts, an array of token ids, or an array of such arrays.
std::vector<Prompt> read_prompts(const Json& value, const char* name, std::size_t most) {
    std::vector<Prompt> prompts;
    const auto add = [&](const Json& one) {
        if (one.is_string())
            prompts.push_back({one.get<std::string>(), {}, false});
        else if (one.is_array())
            prompts.push_back({{}, read_token_ids(one, name), true});
        else
            throw RequestError(
                400, std::string(name) + ": expected texts or arrays of token ids, got " + one.type_name(), name);
    };
    const bool is_many = value.is_array() && !value.empty() && !value[0].is_number();
    if (value.is_array() && value.size() > most && is_many)
        throw RequestError(
            400,
            std::string(name) + ": expected at most " + std::to_string(most) + ", got " + std::to_string(value.size()),
            name);
    if (is_many)
        for (const Json& one : value) add(one);
    else
        add(value);
    return prompts;
}

void read_common(const Fields& fields, Request& request) {
    read_sampling(fields, request);
    request.has_temperature = fields.find("temperature");
    const bool is_chat = request.is_chat;
    const char* length = fields.find("max_completion_tokens") && is_chat ? "max_completion_tokens" : "max_tokens";
    const Json* most = fields.find(length);
    if (most && *most == -1)  // as llama.cpp's server has it
        request.n_new = kMostNew;
    else if (most)
        request.n_new = static_cast<std::uint32_t>(fields.whole(length, 0, is_chat ? 1 : 0, kMostNew));
    request.stop = read_stops(fields);
    request.n_each = static_cast<std::uint32_t>(fields.whole("n", 1, 1, kMostChoices));
    request.stream = fields.flag("stream", false);
    if (const Json* options = fields.find("stream_options"))
        request.with_usage = Fields(*options, "stream_options").flag("include_usage", false);
    read_response_format(fields, request);
    read_forms(fields, request);
}

void read_sampling(const Fields& fields, Request& request) {
    SamplerOptions& s = request.sampler;
    SamplingFields reals;
    read_reals(fields, reals.through(&SamplerOptions::min_p), SamplingNames::openai, s);
    s.top_k = static_cast<std::uint32_t>(std::max<std::int64_t>(fields.whole("top_k", 0, -1, 1 << 30), 0));
    read_reals(fields, reals.through(&SamplerOptions::repeat_penalty), SamplingNames::openai, s);
    const std::int64_t seed = fields.whole("seed", 0, INT64_MIN, INT64_MAX);
    request.random_seed = seed == -1;
    s.seed = static_cast<std::uint64_t>(seed);
    read_reals(fields, reals.rest(), SamplingNames::openai, s);
    if (const Json* biases = fields.find("logit_bias")) request.penalized.biases = read_biases(*biases);
}

void read_tools(const Fields& fields, Request& request) {
    const Json* tools = fields.find("tools");
    if (tools && !tools->empty()) {
        check_tools(fields, *tools);
        request.tools = *tools;
    }
    const Json* choice = fields.find("tool_choice");
    if (!choice || *choice == "auto") return;
    if (choice->is_string() && *choice != "none" && *choice != "required")
        fields.refuse("tool_choice", "auto, none, required or an object that names a tool", *choice);
    if (*choice == "none") {
        request.tools = nullptr;
        return;
    }
    if (request.tools.is_null()) fields.refuse("tool_choice", "tools beside it", *choice);
    request.form = Form::tool;
    if (*choice == "required") return;
    const Fields named(*choice, "tool_choice");
    request.tool = Fields(named.need("function", "a function"), "tool_choice.function").text("name");
    const bool known = std::any_of(request.tools.begin(), request.tools.end(),
                                   [&](const Json& tool) { return tool["function"]["name"] == request.tool; });
    if (!known)
        throw RequestError(400, "tool_choice.function.name: expected one of tools, got " + request.tool.substr(0, 60),
                           "tool_choice");
}

void read_template_options(const Fields& fields, Request& request) {
    if (const Json* extra = fields.find("chat_template_kwargs")) {
        (void)Fields(*extra, "chat_template_kwargs");
        request.template_extra = *extra;
    }
    const std::string format = fields.text("reasoning_format", "auto");  // as llama.cpp's server has it
    if (format != "none" && format != "auto" && format != "deepseek")
        throw RequestError(400, "reasoning_format: expected none, auto or deepseek, got " + format.substr(0, 40),
                           "reasoning_format");
    request.parts_thought = format != "none";
}

void read_effort(const Fields& fields, const char* name, Request& request) {
    const std::string effort = fields.text(name);
    if (effort.empty()) return;
    static constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
    if (std::find(std::begin(kEfforts), std::end(kEfforts), effort) == std::end(kEfforts))
        throw RequestError(
            400,
            fields.path(name) + ": expected none, minimal, low, medium, high or xhigh, got " + effort.substr(0, 40),
            fields.path(name));
    request.template_extra.emplace("reasoning_effort", effort);
    if (effort == "none") request.template_extra.emplace("enable_thinking", false);
}

}  // namespace fovea::serve
