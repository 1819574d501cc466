// POST /v1/responses: items instead of messages, of which a conversation is made for the model's template.
#include <utility>

#include "serve/api/field_readers.h"
#include "serve/api/response_items.h"
#include "serve/api/text_answer.h"
#include "serve/api/text_fields.h"

namespace fovea::serve {
namespace {

/// Where an answer is kept, and as what.
struct Keeping {
    std::shared_ptr<StoredResponses> stored;  ///< null: it is not
    StoredResponse response;
};

/// Puts the messages of the response that this one goes on from behind the system's text, which goes with each request alone.
Keeping go_on(const Fields& fields, const Call& call, Service& service, Request& request) {
    Keeping keeping{.stored = request.stores ? service.stored : nullptr,
                    .response = {.id = new_response_id(), .user = call.user}};
    const Json& input = *fields.find("input");
    Json items = Json::array();
    if (!request.previous.empty()) {
        items = read_json(stored_response(request.previous, call.user, *service.stored).items);
        if (items.size() + (input.is_array() ? input.size() : 1) > kMostMessages)
            refuse("input", "at most " + std::to_string(kMostMessages) + " items with those before", "more");
        Request before;
        read_items(fields, "input", items, before);
        const std::ptrdiff_t n_own = fields.text("instructions").empty() ? 0 : 1;
        request.messages.insert(request.messages.begin() + n_own, before.messages.begin(), before.messages.end());
    }
    if (!keeping.stored) return keeping;
    add_items(input, keeping.response.id, items);
    keeping.response.items = written(items);
    keeping.response.n_input = items.size();
    return keeping;
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

Request read_response(const Fields& fields) {
    Request request;
    request.is_chat = true;
    (void)fields.need("input", "a text or an array of items");
    read_text_fields(fields, kResponse, request);
    return request;
}

namespace {

constexpr std::string_view kMessage = "message", kReasoning = "reasoning";

/// An object with the members of another one behind its own.
std::string joined(std::string object, std::string_view more) {
    object.back() = ',';
    return object.append(more.substr(1));
}

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
    [[nodiscard]] std::string whole() const override { return joined(written(response_), echoed_); }
    [[nodiscard]] std::size_t n_kept() const override { return TextAnswer::n_kept() + 3 * echoed_.size(); }

private:
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;

    [[nodiscard]] std::string event(const std::string& type, Json members);
    [[nodiscard]] std::string whole_event(const std::string& type);
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

    Json response_;       // without what it repeats,
    std::string echoed_;  // which is an object, and stands in two events before any is read
    std::string user_;
    std::shared_ptr<StoredResponses> stored_;  // null: it is not kept, or is already
    bool is_open_ = false;                     // the last item may go on
    std::uint64_t n_events_ = 0;
};

ResponseAnswer::ResponseAnswer(TextAnswerOptions options, const Json& echoed, Keeping keeping)
    : TextAnswer(in_pieces(std::move(options))),
      echoed_(written(echoed)),
      user_(keeping.response.user),
      stored_(std::move(keeping.stored)) {
    response_ = {{"id", keeping.response.id},     {"object", "response"},    {"created_at", options_.created},
                 {"status", "in_progress"},       {"background", false},     {"error", nullptr},
                 {"incomplete_details", nullptr}, {"model", options_.model}, {"output", Json::array()},
                 {"truncation", "disabled"},      {"usage", nullptr}};
    if (stored_ && !stored_->begin(std::move(keeping.response))) stored_ = nullptr;
    response_["store"] = stored_ != nullptr;
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

/// An event with the response as it is.
std::string ResponseAnswer::whole_event(const std::string& type) {
    const Json json = {{"type", type}, {"sequence_number", n_events_++}};
    return "event: " + type + "\ndata: " + joined(written(json), "{\"response\":" + whole() + '}') + "\n\n";
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
    const std::string out = whole_event("response.created");
    return out + whole_event("response.in_progress");
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
    return out + whole_event(is_cut ? "response.incomplete" : "response.completed");
}

/// Keeps the response and the conversation up to its end.
void ResponseAnswer::store() {
    if (!stored_) return;
    const std::string id = response_["id"];
    Json items = Json::array();
    add_items(response_["output"], id, items);
    stored_->finish(id, whole(), written(items));
    stored_ = nullptr;
}

std::string ResponseAnswer::end() {
    if (!failure().status) return {};
    response_["status"] = "failed";
    response_["error"] = {{"code", "server_error"}, {"message", failure().message}};
    return whole_event("response.failed");
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
    const Json body = resolved(std::move(call.json), call.user, *service.stored);
    const Fields fields(body);
    Request request = read_response(fields);
    Keeping keeping = go_on(fields, call, service, request);
    return text_reply<ResponseAnswer>(call, service.find(call, request.model, Work::text), request, kAsManyAsFit,
                                      echo_of(fields), std::move(keeping));
}

Reply endpoints::count_response_tokens(Call& call, Service& service) {
    const Json body = resolved(std::move(call.json), call.user, *service.stored);
    const Fields fields(body);
    Request request = read_response(fields);
    request.stores = false;
    (void)go_on(fields, call, service, request);
    ModelEntry& entry = service.find(call, request.model, Work::text);
    return reply_of({{"object", "response.input_tokens"},
                     {"input_tokens", entry.prompts.read_rendered(entry.prompts.render(request), request).size()}});
}

}  // namespace fovea::serve
