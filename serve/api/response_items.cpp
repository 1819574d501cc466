#include "serve/api/response_items.h"

#include "serve/api/answer.h"

namespace fovea::serve {
namespace {

/// What events of a text are called: "response.output_text.delta".
std::string text_event(const Json& item, const char* what) {
    return (item["type"] == ResponseItems::kMessage ? "response.output_text." : "response.reasoning_text.") +
           std::string(what);
}

}  // namespace

ResponseItems::ResponseItems(const std::string& id, const std::string& model, std::int64_t created, Json echoed)
    : id_(id) {
    response_ = {{"id", "resp_" + id},
                 {"object", "response"},
                 {"created_at", created},
                 {"status", "in_progress"},
                 {"background", false},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"model", model},
                 {"output", Json::array()},
                 {"previous_response_id", nullptr},
                 {"store", false},
                 {"truncation", "disabled"},
                 {"usage", nullptr}};
    response_.update(echoed);
}

std::string ResponseItems::event(const std::string& type, Json members) {
    Json json = {{"type", type}, {"sequence_number", n_events_++}};
    json.update(members);
    return "event: " + type + "\ndata: " + written(json) + "\n\n";
}

std::string ResponseItems::next_id(const char* prefix) const {
    return prefix + id_ + '_' + std::to_string(response_["output"].size());
}

/// Where the open item's text is.
Json ResponseItems::place() const {
    return {{"item_id", response_["output"].back()["id"]},
            {"output_index", response_["output"].size() - 1},
            {"content_index", 0}};
}

std::string ResponseItems::opening() {
    const std::string out = event("response.created", {{"response", response_}});
    return out + event("response.in_progress", {{"response", response_}});
}

std::string ResponseItems::open(Json new_item) {
    response_["output"].push_back(std::move(new_item));
    is_open_ = true;
    return event("response.output_item.added", {{"output_index", response_["output"].size() - 1}, {"item", item()}});
}

/// Ends the open item, where there is one.
std::string ResponseItems::close(const char* status) {
    if (!is_open_) return {};
    is_open_ = false;
    std::string out;
    if (item()["type"] != "function_call") {
        const Json part = item()["content"][0];
        Json done = place();
        done["text"] = part["text"];
        if (item()["type"] == kMessage) done["logprobs"] = Json::array();
        out += event(text_event(item(), "done"), std::move(done));
        Json ended = place();
        ended["part"] = part;
        out += event("response.content_part.done", std::move(ended));
    }
    item()["status"] = status;
    return out +
           event("response.output_item.done", {{"output_index", response_["output"].size() - 1}, {"item", item()}});
}

/// An item that has a text, unless one of this kind is open. Another kind ends here.
std::string ResponseItems::open_text(std::string_view type) {
    if (is_open_ && item()["type"] == type) return {};
    const bool is_message = type == kMessage;
    std::string out = close("completed");
    Json made = {{"id", next_id(is_message ? "msg_" : "rs_")}, {"type", type}, {"status", "in_progress"}};
    if (is_message)
        made["role"] = "assistant";
    else
        made["summary"] = Json::array();
    made["content"] = Json::array();
    out += open(std::move(made));
    Json part = {{"type", is_message ? "output_text" : "reasoning_text"}, {"text", ""}};
    if (is_message) part["annotations"] = part["logprobs"] = Json::array();
    item()["content"].push_back(part);
    Json added = place();
    added["part"] = std::move(part);
    return out + event("response.content_part.added", std::move(added));
}

std::string ResponseItems::write(std::string_view text, std::string_view type) {
    if (text.empty()) return {};
    std::string out = open_text(type);
    item()["content"][0]["text"].get_ref<std::string&>() += text;
    Json delta = place();
    delta["delta"] = text;
    if (type == kMessage) delta["logprobs"] = Json::array();
    return out + event(text_event(item(), "delta"), std::move(delta));
}

std::string ResponseItems::call(const ToolCall& call) {
    std::string out = close("completed");
    const std::string arguments = written(call.arguments);
    out += open({{"id", next_id("fc_")},
                 {"type", "function_call"},
                 {"status", "in_progress"},
                 {"call_id", next_id("call_")},
                 {"name", call.name},
                 {"arguments", ""}});
    Json delta = place();
    delta.erase("content_index");
    Json done = delta;
    delta["delta"] = arguments;
    done["name"] = call.name;
    done["arguments"] = arguments;
    item()["arguments"] = arguments;
    out += event("response.function_call_arguments.delta", std::move(delta));
    out += event("response.function_call_arguments.done", std::move(done));
    return out + close("completed");
}

std::string ResponseItems::finish(FinishReason finish, Json usage) {
    const bool is_cut = finish == FinishReason::length || finish == FinishReason::context;
    std::string out;
    if (response_["output"].empty()) out += open_text(kMessage);  // an answer has a message, if an empty one
    out += close(is_cut ? "incomplete" : "completed");
    response_["status"] = is_cut ? "incomplete" : "completed";
    if (is_cut) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
    response_["usage"] = std::move(usage);
    return out + event(is_cut ? "response.incomplete" : "response.completed", {{"response", response_}});
}

std::string ResponseItems::fail(const Failure& failure) {
    response_["status"] = "failed";
    response_["error"] = {{"code", "server_error"}, {"message", failure.message}};
    return event("response.failed", {{"response", response_}});
}

}  // namespace fovea::serve
