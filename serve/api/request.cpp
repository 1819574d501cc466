// What OpenAI's and Ollama's requests have in common.
#include "serve/api/request.h"

#include "serve/api/fields.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kMostKeys = 4096;  // of an object

/// [{"type": "text", "text": ...}, ...] as one text.
std::string join_parts(const Json& parts, const std::string& place) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Fields part(parts[i], place + "[" + std::to_string(i) + "]");
        const std::string type = part.text("type", "text");
        if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal" &&
            type != "reasoning_text" && type != "summary_text")
            throw RequestError(
                400,
                part.path("type") + ": expected text, which is all that models here read, got " + type.substr(0, 40),
                part.path("type"));
        text += part.text(type == "refusal" ? "refusal" : "text");
    }
    return text;
}

/// OpenAI's arguments are JSON in a string; templates want the object.
void read_tool_calls(Json& calls, const std::string& place) {
    if (!calls.is_array()) throw RequestError(400, place + ": expected an array", place);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const std::string at = place + "[" + std::to_string(i) + "]";
        const Fields call(calls[i], at);
        const Json& function = call.need("function", "an object");
        (void)Fields(function, at + ".function").text("name");
        const auto arguments = function.find("arguments");
        if (arguments == function.end() || !arguments->is_string()) continue;
        Json read = read_arguments(arguments->get<std::string>());
        calls[i]["function"]["arguments"] = std::move(read);
    }
}

}  // namespace

Json read_json(std::string_view body) {
    std::vector<std::uint32_t> n_keys;  // of the objects that are open, by depth
    const auto bounded = [&](int depth, Json::parse_event_t event, Json&) {
        if (depth > kMostDepth)
            throw RequestError(400, "body: expected at most " + std::to_string(kMostDepth) +
                                        " arrays and objects in each other, got more");
        if (event == Json::parse_event_t::object_start) {
            n_keys.resize(static_cast<std::size_t>(depth) + 2);
            n_keys.back() = 0;
        }
        if (event == Json::parse_event_t::key && ++n_keys[static_cast<std::size_t>(depth)] > kMostKeys)
            throw RequestError(400, "body: expected at most " + std::to_string(kMostKeys) +
                                        " keys in an object, got more");  // each is looked for among those before
        return true;
    };
    try {
        return Json::parse(body.begin(), body.end(), bounded);
    } catch (const Json::exception& error) {
        std::string words = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ...: ..."
        words = words.substr(std::min(words.find("] ") + 2, words.size()));
        for (char& c : words)
            if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
        throw RequestError(400, "body: expected JSON, got a " + words.substr(0, 200));
    }
}

void read_reals(const Fields& fields, std::span<const SamplingField> some, SamplingNames names,
                SamplerOptions& sampler) {
    const bool ollama = names == SamplingNames::ollama;
    for (const SamplingField& field : some)
        sampler.*field.to = static_cast<float>(fields.real(ollama ? field.ollama : field.openai,
                                                           ollama ? field.ollama_default : field.openai_default,
                                                           field.least, field.most));
}

void check_tools(const Fields& fields, const Json& tools) {
    if (!tools.is_array() || tools.size() > 128) fields.refuse("tools", "an array of at most 128", tools);
    for (std::size_t i = 0; i < tools.size(); ++i) {
        const std::string place = "tools[" + std::to_string(i) + "]";
        const Fields function(Fields(tools[i], place).need("function", "an object"), place + ".function");
        if (function.text("name").empty()) (void)function.need("name", "a function's name");
    }
}

std::string read_content(const Json& content, const std::string& place) {
    if (content.is_array()) return join_parts(content, place);
    if (content.is_string()) return content.get<std::string>();
    throw RequestError(400, place + ": expected a string or an array of parts, got " + content.type_name(), place);
}

Json read_arguments(const std::string& text) {
    try {
        return text.empty() ? Json::object() : read_json(text);
    } catch (const RequestError&) {
        return text;
    }
}

Json read_messages(const Json& messages) {
    if (!messages.is_array() || messages.empty() || messages.size() > kMostMessages)
        throw RequestError(400,
                           "messages: expected an array of 1 to " + std::to_string(kMostMessages) + ", got " +
                               (messages.is_array() ? std::to_string(messages.size()) : messages.type_name()),
                           "messages");
    Json read = messages;
    for (std::size_t i = 0; i < read.size(); ++i) {
        const std::string place = "messages[" + std::to_string(i) + "]";
        const Fields fields(read[i], place);
        if (fields.text("role").empty())
            throw RequestError(400, place + ".role: expected a role such as user, got none", place + ".role");
        if (const Json* calls = fields.find("tool_calls")) {
            Json list = *calls;
            read_tool_calls(list, place + ".tool_calls");
            read[i]["tool_calls"] = std::move(list);
        } else {
            read[i].erase("tool_calls");
        }
        const Json* content = fields.find("content");
        if (fields.find("images")) fields.only("images", Json::array());
        if (!content)
            read[i]["content"] = "";
        else if (content->is_array())
            read[i]["content"] = join_parts(*content, place + ".content");
        else if (!content->is_string())
            fields.refuse("content", "a string or an array of parts", *content);
    }
    return read;
}

std::vector<Token> read_token_ids(const Json& list, const char* name) {
    std::vector<Token> tokens;
    for (const Json& id : list) {
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0xffffffffu)
            throw RequestError(400, std::string(name) + ": expected token ids, got " + id.dump().substr(0, 40), name);
        tokens.push_back(id.get<Token>());
    }
    return tokens;
}

std::vector<std::string> read_stops(const Fields& fields) {
    const Json* stop = fields.find("stop");
    std::vector<std::string> stops;
    if (!stop) return stops;
    const Json list = stop->is_array() ? *stop : Json::array({*stop});
    std::size_t n_bytes = 0;
    for (const Json& text : list) {
        if (!text.is_string()) fields.refuse("stop", "a string or an array of strings", text);
        if (text.get_ref<const std::string&>().empty()) continue;
        stops.push_back(text.get<std::string>());
        n_bytes += stops.back().size();
    }
    if (stops.size() > kMostStops || n_bytes > kMostStopBytes)
        throw RequestError(400,
                           fields.path("stop") + ": expected at most " + std::to_string(kMostStops) + " strings of " +
                               std::to_string(kMostStopBytes) + " bytes together, got more",
                           fields.path("stop"));
    return stops;
}

void read_vector_options(const Fields& fields, VectorRequest& request, bool cuts) {
    if (fields.find("prompt_name")) request.prompt_name = fields.text("prompt_name");
    request.n_dimensions = static_cast<std::uint32_t>(fields.whole("dimensions", 0, 1, 1 << 24));
    request.cuts = fields.flag("truncate", cuts);
}

}  // namespace fovea::serve
