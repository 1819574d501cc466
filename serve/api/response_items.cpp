// Items of responses: read as a conversation's messages, found again, kept and listed.
#include "serve/api/response_items.h"

#include <algorithm>
#include <map>

#include "serve/api/endpoint.h"
#include "serve/api/field_readers.h"
#include "serve/api/query.h"

namespace fovea::serve {
namespace {

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

/// The stored item of this id, which ends with the number of its response and its own: "msg_ID_0". Responses are read once.
const Json& referred(const Fields& item, const std::string& user, const StoredResponses& stored,
                     std::map<std::string, Json>& read, std::size_t& n_bytes) {
    const std::string id = item.text("id");
    const std::size_t first = std::min(id.find('_'), id.size()), last = id.rfind('_');
    const std::string response = last > first && last != id.npos ? "resp" + id.substr(first, last - first) : "";
    auto place = read.find(response);
    if (place == read.end()) {
        const std::optional<StoredResponse> found = stored.find(response, user);
        n_bytes += found ? found->items.size() : 0;
        if (n_bytes > kMostConversation)
            refuse("input", "references to responses of at most " + std::to_string(kMostConversation) + " bytes",
                   "more");
        place = read.emplace(response, found ? read_json(found->items) : Json::array()).first;
    }
    for (const Json& one : place->second)
        if (one["id"] == id) return one;
    item.refuse("id", "an item of a stored response", id);
}

/// A text, or parts of one, as parts of which this is the usual type.
Json kept_parts(const Json& content, const std::string& usual) {
    Json parts = Json::array();
    const auto add = [&](const std::string& type, const std::string& text) {
        Json part = {{"type", type}, {type == "refusal" ? "refusal" : "text", text}};
        if (type == "output_text") part["annotations"] = Json::array();
        parts.push_back(std::move(part));
    };
    if (content.is_string()) add(usual, content.get<std::string>());
    for (std::size_t i = 0; content.is_array() && i < content.size(); ++i) {
        const Fields part(content[i]);
        const std::string type = part.text("type", "text");
        add(type == "text" ? usual : type, part.text(type == "refusal" ? "refusal" : "text"));
    }
    return parts;
}

/// An id of the i-th item up to a response's end, as `referred` reads it.
std::string new_id(const std::string& type, const std::string& response, std::size_t i) {
    const char* prefix = type == "message"         ? "msg"
                         : type == "function_call" ? "fc"
                         : type == "reasoning"     ? "rs"
                                                   : "fco";
    return prefix + response.substr(response.find('_')) + "_i" + std::to_string(i);
}

/// A page of items, the newest item first unless it is asked for otherwise.
Json page_of(const Fields& query, Json items) {
    const auto limit = static_cast<std::ptrdiff_t>(query.whole("limit", 20, 1, 100));
    if (query.one_of("order", {"desc", "asc"}) == "desc") std::reverse(items.begin(), items.end());
    query.only("before", Json());
    const std::string after = query.text("after");
    auto first = items.begin();
    if (!after.empty()) {
        first = std::find_if(items.begin(), items.end(), [&](const Json& item) { return item["id"] == after; });
        if (first == items.end()) query.refuse("after", "the id of an item of this response", after);
        ++first;
    }
    const auto end = first + std::min(limit, items.end() - first);
    Json page = {{"object", "list"}, {"data", Json::array()}, {"first_id", nullptr}, {"last_id", nullptr}};
    page["data"].insert(page["data"].end(), first, end);
    if (first != end) {
        page["first_id"] = (*first)["id"];
        page["last_id"] = (*(end - 1))["id"];
    }
    page["has_more"] = end != items.end();
    return page;
}

}  // namespace

StoredResponse stored_response(const std::string& id, const std::string& user, const StoredResponses& stored) {
    std::optional<StoredResponse> found = stored.find(id, user);
    if (!found)
        throw RequestError(400, "previous_response_id: expected a stored response, got " + id.substr(0, 60),
                           "previous_response_id", "previous_response_not_found");
    return std::move(*found);
}

void add_items(const Json& given, const std::string& response, Json& items) {
    if (given.is_string()) return add_items(Json::array({{{"role", "user"}, {"content", given}}}), response, items);
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Fields from(given[i], at("input", i));
        const std::string type = from.text("type", "message"), id = from.text("id");
        Json item = {{"id", id}, {"type", type}, {"status", from.text("status", "completed")}};
        if (id.empty()) item["id"] = new_id(type, response, items.size());
        const auto keep = [&](const char* name) { item[name] = from.text(name); };
        const auto keep_parts = [&](const char* name, const char* usual) {
            const Json* content = from.find(name);
            item[name] = content ? kept_parts(*content, usual) : Json::array();
        };
        if (type == "message") {
            keep("role");
            keep_parts("content", item["role"] == "assistant" ? "output_text" : "input_text");
        } else if (type == "reasoning") {
            keep_parts("summary", "summary_text");
            keep_parts("content", "reasoning_text");
        } else {
            keep("call_id");
            if (type == "function_call") {
                keep("name");
                keep("arguments");
            } else if (from.need("output", "a string").is_string()) {
                keep("output");
            } else {
                keep_parts("output", "input_text");
            }
        }
        items.push_back(std::move(item));
    }
}

Json resolved(Json body, const std::string& user, const StoredResponses& stored) {
    const auto input = body.find("input");
    if (input == body.end() || !input->is_array() || input->size() > kMostMessages) return body;
    std::map<std::string, Json> read;
    std::size_t n_bytes = 0;
    for (std::size_t i = 0; i < input->size(); ++i)
        if (Json& item = (*input)[i]; item.is_object() && item.value("type", Json()) == "item_reference")
            item = Json(referred(Fields(item, at("input", i)), user, stored, read, n_bytes));
    return body;
}

void read_items(const Fields& fields, const char* name, const Json& input, Request& request) {
    if (input.is_string()) {
        request.messages.push_back({{"role", "user"}, {"content", input}});
        return;
    }
    if (!input.is_array() || input.empty() || input.size() > kMostMessages)
        fields.refuse(name, "a text or an array of 1 to " + std::to_string(kMostMessages) + " items", input);
    for (std::size_t i = 0; i < input.size(); ++i) {
        const Fields item(input[i], at(name, i));
        const std::string type = item.one_of("type", {"message", "function_call", "function_call_output", "reasoning"});
        const auto add = type == "message"         ? add_message
                         : type == "function_call" ? add_call
                         : type == "reasoning"     ? add_reasoning
                                                   : add_output;
        add(item, request.messages);
    }
}

Reply endpoints::tell_response(Call& call, Service& service) {
    constexpr std::string_view kBefore = "responses/", kItems = "/input_items";
    std::string id = call.path.substr(call.path.find(kBefore) + kBefore.size());
    const bool lists = id.ends_with(kItems);
    if (lists) id.resize(id.size() - kItems.size());
    if (lists && call.deletes) throw RequestError(405, "method: expected GET, got DELETE");
    if (call.deletes && service.stored->remove(id, call.user))
        return reply_of({{"id", id}, {"object", "response"}, {"deleted", true}});
    std::optional<StoredResponse> found = call.deletes ? std::nullopt : service.stored->find(id, call.user);
    if (!found) throw RequestError(404, "response: expected a stored one, got " + id.substr(0, 60), "", "not_found");
    const Json asked = read_query(call.query);
    const Fields query(asked);
    if (lists) {
        Json items = read_json(found->items);
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(found->n_input), items.end());
        return reply_of(page_of(query, std::move(items)));
    }
    query.only("stream", false);
    return {.body = std::move(found->response)};
}

}  // namespace fovea::serve
