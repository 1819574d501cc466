// POST /v1/messages and /v1/messages/count_tokens: Anthropic's conversations, whose contents are blocks.
#include "serve/api/field_readers.h"
#include "serve/api/text_answer.h"
#include "serve/api/text_fields.h"

namespace fovea::serve {
namespace {

constexpr std::string_view kText = "text", kThinking = "thinking";

/// A block of an assistant's turn becomes a part of its message.
void add_own_block(const Fields& block, Json& message) {
    const std::string type = block.one_of("type", {"text", "thinking", "redacted_thinking", "tool_use"});
    if (type == "text") {
        message["content"].get_ref<std::string&>() += block.text("text");
    } else if (type == "thinking") {
        message["reasoning_content"] = message.value("reasoning_content", std::string()) + block.text("thinking");
    } else if (type == "tool_use") {
        if (block.text("name").empty()) (void)block.need("name", "a tool's name");
        const Json* input = block.find("input");
        message["tool_calls"].push_back(
            {{"id", block.text("id")},
             {"type", "function"},
             {"function", {{"name", block.text("name")}, {"arguments", input ? *input : Json::object()}}}});
    }
}

/// Results of tools are messages of their own, before what the user says beside them.
void add_user_block(const Fields& block, Json& results, std::string& text) {
    if (block.one_of("type", {"text", "tool_result"}) == "text") {
        text += block.text("text");
        return;
    }
    const Json* content = block.find("content");
    results.push_back({{"role", "tool"},
                       {"tool_call_id", block.text("tool_use_id")},
                       {"content", content ? read_content(*content, block.path("content")) : std::string()}});
}

}  // namespace

void read_turns(const Fields& fields, const char* name, const Json& turns, Request& request) {
    if (!turns.is_array() || turns.empty() || turns.size() > kMostMessages)
        fields.refuse(name, "an array of 1 to " + std::to_string(kMostMessages) + " messages", turns);
    for (std::size_t i = 0; i < turns.size(); ++i) {
        const Fields turn(turns[i], at(name, i));
        const bool is_user = turn.one_of("role", {"user", "assistant"}) == "user";
        const Json& content = turn.need("content", "a string or an array of blocks");
        if (!content.is_string() && !content.is_array())
            turn.refuse("content", "a string or an array of blocks", content);
        Json message = {{"role", is_user ? "user" : "assistant"},
                        {"content", content.is_string() ? content : Json("")}};
        const std::size_t n_before = request.messages.size();
        std::string text;
        for (std::size_t j = 0; content.is_array() && j < content.size(); ++j) {
            const Fields block(content[j], at(turn.path("content"), j));
            if (is_user)
                add_user_block(block, request.messages, text);
            else
                add_own_block(block, message);
        }
        if (is_user && content.is_array()) message["content"] = text;
        if (content.is_string()) text = content;
        // Results alone are no message of the user's.
        if (!is_user || !text.empty() || request.messages.size() == n_before)
            request.messages.push_back(std::move(message));
        request.continues_answer = !is_user;  // the last message's word holds
    }
}

Request read_message_request(const Fields& fields) {
    Request request;
    request.is_chat = true;
    (void)fields.need("messages", "an array of messages");
    read_text_fields(fields, kMessages, request);
    return request;
}

namespace {

/// Blocks (thinking, text, uses of tools), whole or as a stream of events.
class MessageAnswer final : public TextAnswer {
public:
    /// `stops`: the request's own; another stop text is the model's end of a turn.
    MessageAnswer(TextAnswerOptions options, std::vector<std::string> stops);
    [[nodiscard]] std::string begin() override;
    [[nodiscard]] std::string end() override;
    [[nodiscard]] std::string whole() const override { return written(message_); }

private:
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;

    [[nodiscard]] static std::string event(const std::string& type, Json members);
    [[nodiscard]] std::string write(std::string_view text, std::string_view type);
    [[nodiscard]] std::string call(const CallPiece& piece, const Json* input);
    [[nodiscard]] std::string open(Json block);
    [[nodiscard]] std::string delta(const char* type, const char* name, Json value) const;
    [[nodiscard]] std::string close();
    [[nodiscard]] std::string finish(const Written& written, const Event& event);
    [[nodiscard]] Json& block() { return message_["content"].back(); }

    Json message_;
    std::vector<std::string> stops_;
    bool is_open_ = false;  // the last block may go on
};

MessageAnswer::MessageAnswer(TextAnswerOptions options, std::vector<std::string> stops)
    : TextAnswer(in_pieces(std::move(options))), stops_(std::move(stops)) {
    message_ = {{"id", "msg_" + options_.id},
                {"type", "message"},
                {"role", "assistant"},
                {"model", options_.model},
                {"content", Json::array()},
                {"stop_reason", nullptr},
                {"stop_sequence", nullptr},
                {"usage",
                 {{"input_tokens", options_.n_prompt},
                  {"cache_creation_input_tokens", 0},
                  {"cache_read_input_tokens", 0},
                  {"output_tokens", 0}}}};
}

std::string MessageAnswer::event(const std::string& type, Json members) {
    Json json = {{"type", type}};
    json.update(members);
    return as_event(type, json);
}

std::string MessageAnswer::begin() { return event("message_start", {{"message", message_}}); }

std::string MessageAnswer::open(Json new_block) {
    const std::string out = close();
    message_["content"].push_back(new_block);
    is_open_ = true;
    return out + event("content_block_start",
                       {{"index", message_["content"].size() - 1}, {"content_block", std::move(new_block)}});
}

std::string MessageAnswer::delta(const char* type, const char* name, Json value) const {
    return event("content_block_delta",
                 {{"index", message_["content"].size() - 1}, {"delta", {{"type", type}, {name, std::move(value)}}}});
}

std::string MessageAnswer::close() {
    if (!is_open_) return {};
    is_open_ = false;
    const std::string signed_by = block()["type"] == kThinking ? delta("signature_delta", "signature", "") : "";
    return signed_by + event("content_block_stop", {{"index", message_["content"].size() - 1}});
}

std::string MessageAnswer::write(std::string_view text, std::string_view type) {
    if (text.empty()) return {};
    const bool is_text = type == kText;
    std::string out;
    if (!is_open_ || block()["type"] != type) {
        Json made = {{"type", type}, {type, ""}};
        if (!is_text) made["signature"] = "";
        out = open(std::move(made));
    }
    block()[std::string(type)].get_ref<std::string&>() += text;
    return out + delta(is_text ? "text_delta" : "thinking_delta", is_text ? "text" : "thinking", text);
}

/// `input`: of a call that ends with this piece; else null.
std::string MessageAnswer::call(const CallPiece& piece, const Json* input) {
    const std::string id = call_id(options_.id, 0, piece.index);
    std::string out;
    if (!piece.name.empty())
        out += open({{"type", "tool_use"}, {"id", id}, {"name", piece.name}, {"input", Json::object()}});
    out += delta("input_json_delta", "partial_json", piece.arguments);
    if (!input) return out;
    block()["input"] = *input;
    return out + close();
}

std::string MessageAnswer::finish(const Written& written, const Event& event) {
    std::string out = close();
    const bool is_own_stop =
        event.finish == FinishReason::stop_text && std::find(stops_.begin(), stops_.end(), event.stop) != stops_.end();
    const bool is_cut = event.finish == FinishReason::length || event.finish == FinishReason::context;
    message_["stop_reason"] = !written.reader.calls().empty() ? "tool_use"
                              : is_own_stop                   ? "stop_sequence"
                              : is_cut                        ? "max_tokens"
                                                              : "end_turn";
    if (is_own_stop) message_["stop_sequence"] = event.stop;
    message_["usage"]["input_tokens"] = event.n_prompt - event.n_shared;
    message_["usage"]["cache_read_input_tokens"] = event.n_shared;
    message_["usage"]["output_tokens"] = event.n_new;
    out += this->event(
        "message_delta",
        {{"delta", {{"stop_reason", message_["stop_reason"]}, {"stop_sequence", message_["stop_sequence"]}}},
         {"usage", message_["usage"]}});
    return out + this->event("message_stop", Json::object());
}

std::string MessageAnswer::end() {
    if (!failure().status) return {};
    return as_event("error", read_json(error_body("/v1/messages", failure().status, failure().message)));
}

std::string MessageAnswer::piece(Written& written, const Event& event, const Part& part) {
    std::string out = write(part.thought, kThinking);
    each_in_order(
        written, part, [&](std::string_view text) { out += write(text, kText); },
        [&](const CallPiece& piece, bool is_last) {
            out += call(piece, is_last ? &written.reader.calls()[piece.index].arguments : nullptr);
        });
    return event.ended ? out + finish(written, event) : out;
}

}  // namespace

Reply endpoints::answer_messages(Call& call, Service& service) {
    const Fields fields(call.json);
    (void)fields.need("max_tokens", "a whole number");
    const Request request = read_message_request(fields);
    return text_reply<MessageAnswer>(call, service.find(call, request.model, Work::text), request, kAsManyAsFit,
                                     request.stop);
}

Reply endpoints::count_message_tokens(Call& call, Service& service) {
    const Request request = read_message_request(Fields(call.json));
    call.ignored = request.ignored;
    ModelEntry& entry = service.find(call, request.model, Work::text);
    return reply_of({{"input_tokens", entry.prompts.read_rendered(entry.prompts.render(request), request).size()}});
}

}  // namespace fovea::serve
