// POST /v1/responses: items instead of messages, of which a conversation is made for the model's template.
#include <algorithm>
#include <map>

#include "serve/api/field_readers.h"
#include "serve/api/text_answer.h"
#include "serve/api/text_fields.h"

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

/// Where an answer is kept, and as what.
struct Keeping {
    std::shared_ptr<StoredResponses> stored;  ///< null: it is not
    StoredResponse response;
};

/// Puts the messages of the response that this one goes on from behind the system's text, which goes with each request alone.
Keeping go_on(const Fields& fields, const Call& call, Service& service, Request& request) {
    Keeping keeping{.stored = request.stores ? service.stored : nullptr,
                    .response = {.id = new_response_id(), .user = call.user, .messages = {}}};
    const std::ptrdiff_t n_own = fields.text("instructions").empty() ? 0 : 1;
    if (!request.previous.empty()) {
        const std::optional<StoredResponse> before = service.stored->find(request.previous, call.user);
        if (!before)
            throw RequestError(
                400, "previous_response_id: expected a stored response, got " + request.previous.substr(0, 60),
                "previous_response_id", "previous_response_not_found");
        const Json messages = read_json(before->messages);
        if (messages.size() + request.messages.size() > kMostMessages)
            refuse("input", "at most " + std::to_string(kMostMessages) + " messages with those before", "more");
        request.messages.insert(request.messages.begin() + n_own, messages.begin(), messages.end());
    }
    Json messages = Json::array();
    if (keeping.stored) messages.insert(messages.end(), request.messages.begin() + n_own, request.messages.end());
    keeping.response.messages = written(messages);
    return keeping;
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
        n_bytes += found ? found->response.size() : 0;
        if (n_bytes > kMostConversation)
            refuse("input", "references to responses of at most " + std::to_string(kMostConversation) + " bytes",
                   "more");
        place = read.emplace(response, found ? read_json(found->response)["output"] : Json::array()).first;
    }
    for (const Json& one : place->second)
        if (one["id"] == id) return one;
    item.refuse("id", "an item of a stored response", id);
}

/// A request with items in place of references to them.
Json resolved(const Json& asked, const std::string& user, const StoredResponses& stored) {
    Json body = asked;
    const auto input = body.find("input");
    if (input == body.end() || !input->is_array() || input->size() > kMostMessages) return body;
    std::map<std::string, Json> read;
    std::size_t n_bytes = 0;
    for (std::size_t i = 0; i < input->size(); ++i)
        if (Json& item = (*input)[i]; item.is_object() && item.value("type", Json()) == "item_reference")
            item = Json(referred(Fields(item, at("input", i)), user, stored, read, n_bytes));
    return body;
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
    keep("previous_response_id", nullptr);
    keep("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
    keep("store", true);
    keep("text", {{"format", {{"type", "text"}}}});
    keep("tool_choice", "auto");
    keep("tools", Json::array());
    keep("user", nullptr);
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, flag, help, openai, openai_default, ...) \
    keep(openai, double{openai_default});
#define FOVEA_SAMPLER_MORE_REAL(...)
#include "fovea/sampler_options.inc"
    return echo;
}

}  // namespace

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

Request read_response(const Fields& fields) {
    Request request;
    request.is_chat = true;
    (void)fields.need("input", "a text or an array of items");
    read_text_fields(fields, kResponse, request);
    return request;
}

namespace {

constexpr std::string_view kMessage = "message", kReasoning = "reasoning";

/// Items (reasoning, a message, calls of functions), whole or as a stream of typed events.
class ResponseAnswer final : public TextAnswer {
public:
    /// `echoed`: settings of the request, which the answer repeats.
    ResponseAnswer(TextAnswerOptions options, const Json& echoed, Keeping keeping);
    ~ResponseAnswer() override;
    ResponseAnswer(const ResponseAnswer&) = delete;
    ResponseAnswer& operator=(const ResponseAnswer&) = delete;
    [[nodiscard]] std::string begin() override;
    [[nodiscard]] std::string end() override;
    [[nodiscard]] std::string whole() const override { return written(response_); }

private:
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;

    [[nodiscard]] std::string event(const std::string& type, Json members);
    [[nodiscard]] std::string write(std::string_view text, std::string_view type);
    [[nodiscard]] std::string call(const CallPiece& piece, bool is_last);
    [[nodiscard]] std::string finish(FinishReason finish);
    void store();
    [[nodiscard]] std::string open_text(std::string_view type);
    [[nodiscard]] std::string open(Json item);
    [[nodiscard]] std::string close(const char* status);
    [[nodiscard]] std::string next_id(const char* prefix) const;
    [[nodiscard]] Json& item() { return response_["output"].back(); }
    [[nodiscard]] Json place(const char* name, Json value) const;
    [[nodiscard]] Json call_place(const char* name, Json value) const;
    [[nodiscard]] std::string text_event(const char* what, const char* name, Json value);

    Json response_;
    std::string user_;
    std::shared_ptr<StoredResponses> stored_;  // null: it is not kept, or is already
    bool is_open_ = false;                     // the last item may go on
    std::uint64_t n_events_ = 0;
};

ResponseAnswer::ResponseAnswer(TextAnswerOptions options, const Json& echoed, Keeping keeping)
    : TextAnswer(in_pieces(std::move(options))), user_(keeping.response.user), stored_(std::move(keeping.stored)) {
    response_ = {{"id", keeping.response.id},     {"object", "response"},    {"created_at", options_.created},
                 {"status", "in_progress"},       {"background", false},     {"error", nullptr},
                 {"incomplete_details", nullptr}, {"model", options_.model}, {"output", Json::array()},
                 {"truncation", "disabled"},      {"usage", nullptr}};
    response_.update(echoed);
    if (stored_) stored_->begin(std::move(keeping.response));
}

/// One that did not come to its end is not kept.
ResponseAnswer::~ResponseAnswer() {
    if (stored_) stored_->remove(response_["id"], user_);
}

std::string ResponseAnswer::event(const std::string& type, Json members) {
    Json json = {{"type", type}, {"sequence_number", n_events_++}};
    json.update(members);
    return as_event(type, json);
}

std::string ResponseAnswer::next_id(const char* prefix) const {
    const std::string id = response_["id"];
    return prefix + id.substr(id.find('_') + 1) + '_' + std::to_string(response_["output"].size());
}

/// Where the open item's text is, and one thing of it.
Json ResponseAnswer::place(const char* name, Json value) const {
    return {{"item_id", response_["output"].back()["id"]},
            {"output_index", response_["output"].size() - 1},
            {"content_index", 0},
            {name, std::move(value)}};
}

/// "response.output_text.delta" and its kin.
std::string ResponseAnswer::text_event(const char* what, const char* name, Json value) {
    const bool is_message = item()["type"] == kMessage;
    Json members = place(name, std::move(value));
    if (is_message) members["logprobs"] = Json::array();
    return event((is_message ? "response.output_text." : "response.reasoning_text.") + std::string(what),
                 std::move(members));
}

std::string ResponseAnswer::begin() {
    const std::string out = event("response.created", {{"response", response_}});
    return out + event("response.in_progress", {{"response", response_}});
}

std::string ResponseAnswer::open(Json new_item) {
    response_["output"].push_back(std::move(new_item));
    is_open_ = true;
    return event("response.output_item.added", {{"output_index", response_["output"].size() - 1}, {"item", item()}});
}

/// Ends the open item, where there is one.
std::string ResponseAnswer::close(const char* status) {
    if (!is_open_) return {};
    is_open_ = false;
    std::string out;
    if (item()["type"] == "function_call") {
        Json done = call_place("name", item()["name"]);
        done["arguments"] = item()["arguments"];
        out += event("response.function_call_arguments.done", std::move(done));
    } else {
        const Json part = item()["content"][0];
        out += text_event("done", "text", part["text"]);
        out += event("response.content_part.done", place("part", part));
    }
    item()["status"] = status;
    return out +
           event("response.output_item.done", {{"output_index", response_["output"].size() - 1}, {"item", item()}});
}

/// An item that has a text, unless one of this kind is open. Another kind ends here.
std::string ResponseAnswer::open_text(std::string_view type) {
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
    return out + event("response.content_part.added", place("part", std::move(part)));
}

std::string ResponseAnswer::write(std::string_view text, std::string_view type) {
    if (text.empty()) return {};
    std::string out = open_text(type);
    item()["content"][0]["text"].get_ref<std::string&>() += text;
    return out + text_event("delta", "delta", text);
}

std::string ResponseAnswer::call(const CallPiece& piece, bool is_last) {
    std::string out;
    if (!piece.name.empty()) {
        out += close("completed");
        out += open({{"id", next_id("fc_")},
                     {"type", "function_call"},
                     {"status", "in_progress"},
                     {"call_id", call_id(options_.id, 0, response_["output"].size())},
                     {"name", piece.name},
                     {"arguments", ""}});
    }
    item()["arguments"].get_ref<std::string&>() += piece.arguments;
    out += event("response.function_call_arguments.delta", call_place("delta", piece.arguments));
    return is_last ? out + close("completed") : out;
}

Json ResponseAnswer::call_place(const char* name, Json value) const {
    Json members = place(name, std::move(value));
    members.erase("content_index");
    return members;
}

std::string ResponseAnswer::finish(FinishReason finish) {
    const bool is_cut = finish == FinishReason::length || finish == FinishReason::context;
    std::string out;
    if (response_["output"].empty()) out += open_text(kMessage);  // an answer has a message, if an empty one
    out += close(is_cut ? "incomplete" : "completed");
    response_["status"] = is_cut ? "incomplete" : "completed";
    if (is_cut) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
    Json used = usage();
    response_["usage"] = {{"input_tokens", used["prompt_tokens"]},
                          {"input_tokens_details", used["prompt_tokens_details"]},
                          {"output_tokens", used["completion_tokens"]},
                          {"output_tokens_details", used["completion_tokens_details"]},
                          {"total_tokens", used["total_tokens"]}};
    store();
    return out + event(is_cut ? "response.incomplete" : "response.completed", {{"response", response_}});
}

/// Keeps the response and the conversation up to its end.
void ResponseAnswer::store() {
    if (!stored_) return;
    Request said;
    read_items(Fields(response_), "output", response_["output"], said);
    stored_->finish(response_["id"], written(response_), written(said.messages));
    stored_ = nullptr;
}

std::string ResponseAnswer::end() {
    if (!failure().status) return {};
    response_["status"] = "failed";
    response_["error"] = {{"code", "server_error"}, {"message", failure().message}};
    return event("response.failed", {{"response", response_}});
}

std::string ResponseAnswer::piece(Written& written, const Event& event, const Part& part) {
    std::string out = write(part.thought, kReasoning);
    each_in_order(
        written, part, [&](std::string_view text) { out += write(text, kMessage); },
        [&](const CallPiece& piece, bool is_last) { out += call(piece, is_last); });
    return event.ended ? out + finish(event.finish) : out;
}

}  // namespace

Reply endpoints::respond(Call& call, Service& service) {
    const Json body = resolved(call.json, call.user, *service.stored);
    const Fields fields(body);
    Request request = read_response(fields);
    Keeping keeping = go_on(fields, call, service, request);
    return text_reply<ResponseAnswer>(call, service.find(call, request.model, Work::text), request, kAsManyAsFit,
                                      echo_of(fields), std::move(keeping));
}

Reply endpoints::tell_response(Call& call, Service& service) {
    const std::string id = call.path.substr(call.path.rfind('/') + 1);
    if (call.deletes && service.stored->remove(id, call.user))
        return reply_of({{"id", id}, {"object", "response"}, {"deleted", true}});
    std::optional<StoredResponse> found = call.deletes ? std::nullopt : service.stored->find(id, call.user);
    if (!found) throw RequestError(404, "response: expected a stored one, got " + id.substr(0, 60), "", "not_found");
    return {.body = std::move(found->response)};
}

}  // namespace fovea::serve
