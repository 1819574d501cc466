// JSON of requests, and the parts of it that several kinds of requests have.
#include "serve/api/request.h"

#include "serve/api/fields.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kMostKeys = 4096;  // of an object

/// [{"type": "text", "text": ...}, ...] as one text.
std::string join_parts(const Json& parts, const std::string& place) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Fields part(parts[i], at(place, i));
        const std::string type = part.text("type", "text");
        if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal" &&
            type != "reasoning_text" && type != "summary_text")
            refuse(part.path("type"), "text, which is all that models here read", type.substr(0, 40));
        text += part.text(type == "refusal" ? "refusal" : "text");
    }
    return text;
}

/// OpenAI's arguments are JSON in a string; templates want the object.
void read_tool_calls(Json& calls, const std::string& place) {
    if (!calls.is_array()) throw RequestError(400, place + ": expected an array", place);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const Json& function = Fields(calls[i], at(place, i)).need("function", "an object");
        (void)Fields(function, at(place, i) + ".function").text("name");
        const auto arguments = function.find("arguments");
        if (arguments == function.end() || !arguments->is_string()) continue;
        Json read = read_arguments(arguments->get<std::string>());
        calls[i]["function"]["arguments"] = std::move(read);
    }
}

}  // namespace

Json read_body(std::string_view body) {
    JsonFault fault;
    Json read = read_json(body, &fault, {.depth = kMostDepth, .members = kMostKeys});
    if (read.is_discarded()) throw RequestError(400, "body: " + fault.words);
    return read;
}

void set_choices(const Request& request, Job& job) {
    job.sampler = request.sampler;
    job.penalized = request.penalized;
    job.stop = request.stop;
    job.end_tokens.insert(job.end_tokens.end(), request.end_tokens.begin(), request.end_tokens.end());
    job.shows_special = request.shows_special;
    job.shows_stop = request.shows_stop;
}

std::string read_content(const Json& content, const std::string& place) {
    if (content.is_array()) return join_parts(content, place);
    if (content.is_string()) return content.get<std::string>();
    refuse(place, "a string or an array of parts", content.type_name());
}

Json read_arguments(const std::string& text) {
    try {
        return text.empty() ? Json::object() : read_body(text);
    } catch (const RequestError&) {
        return text;
    }
}

Json read_messages(const Json& messages) {
    if (!messages.is_array() || messages.empty() || messages.size() > kMostMessages)
        refuse("messages", "an array of 1 to " + std::to_string(kMostMessages),
               messages.is_array() ? std::to_string(messages.size()) : messages.type_name());
    Json read = messages;
    for (std::size_t i = 0; i < read.size(); ++i) {
        const std::string place = at("messages", i);
        const Fields fields(read[i], place);
        if (fields.text("role").empty()) refuse(place + ".role", "a role such as user", "none");
        if (const Json* calls = fields.find("tool_calls")) {
            Json list = *calls;
            read_tool_calls(list, place + ".tool_calls");
            read[i]["tool_calls"] = std::move(list);
        } else {
            read[i].erase("tool_calls");
        }
        const Json* content = fields.find("content");
        fields.only("images", Json::array());
        for (const char* other : {"function_call", "audio"}) fields.only(other, Json());
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
            refuse(name, "token ids", id.dump().substr(0, 40));
        tokens.push_back(id.get<Token>());
    }
    return tokens;
}

std::vector<Prompt> read_prompts(const Json& value, const char* name, std::size_t most) {
    std::vector<Prompt> prompts;
    const auto add = [&](const Json& one) {
        if (one.is_string())
            prompts.push_back({one.get<std::string>(), {}, false});
        else if (one.is_array())
            prompts.push_back({{}, read_token_ids(one, name), true});
        else
            refuse(name, "texts or arrays of token ids", one.type_name());
    };
    const bool is_many = value.is_array() && !value.empty() && !value[0].is_number();
    if (is_many && value.size() > most) refuse(name, "at most " + std::to_string(most), std::to_string(value.size()));
    if (is_many)
        for (const Json& one : value) add(one);
    else
        add(value);
    return prompts;
}

void read_vector_options(const Fields& fields, VectorRequest& request, bool cuts) {
    if (fields.find("prompt_name")) request.prompt_name = fields.text("prompt_name");
    request.n_dimensions = static_cast<std::uint32_t>(fields.whole("dimensions", 0, 1, 1 << 24));
    request.cuts = fields.flag("truncate", cuts);
}

}  // namespace fovea::serve
