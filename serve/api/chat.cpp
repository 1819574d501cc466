// POST /v1/chat/completions: OpenAI's conversations.
#include "serve/api/text_answer.h"
#include "serve/api/text_fields.h"

namespace fovea::serve {

Request read_chat(const Fields& fields) {
    Request request;
    request.is_chat = true;
    (void)fields.need("messages", "an array of messages");
    read_text_fields(fields, kChat, request);
    return request;
}

namespace {

constexpr const char* kChunk = "chat.completion.chunk";

Json chat_logprobs(const std::vector<ChosenToken>& tokens) {
    return {{"content", chances_of(tokens, false)}, {"refusal", nullptr}};
}

/// What a call's object begins with.
Json call_head(const std::string& id, std::size_t choice, std::size_t index) {
    return {{"id", call_id(id, choice, index)}, {"type", "function"}};
}

Json openai_calls(const std::string& id, std::size_t choice, const std::vector<ToolCall>& calls) {
    Json list = Json::array();
    for (const ToolCall& call : calls) {
        list.push_back(call_head(id, choice, list.size()));
        list.back()["function"] = {{"name", call.name}, {"arguments", written(call.arguments)}};
    }
    return list;
}

/// The piece of a call: the first has its name.
Json openai_piece(const std::string& id, std::size_t choice, const CallPiece& piece) {
    Json call = {{"index", piece.index}};
    if (!piece.name.empty()) {
        call.update(call_head(id, choice, piece.index));
        call["function"]["name"] = piece.name;
    }
    call["function"]["arguments"] = piece.arguments;
    return call;
}

class ChatAnswer final : public TextAnswer {
public:
    explicit ChatAnswer(TextAnswerOptions options) : TextAnswer(streaming_calls(std::move(options))) {}
    [[nodiscard]] std::string begin() override;
    [[nodiscard]] std::string end() override { return openai_end(kChunk); }
    [[nodiscard]] std::string whole() const override;

private:
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;
};

std::string ChatAnswer::begin() {
    std::string out;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        Json json = head(kChunk);
        Json choice = {{"index", i}, {"delta", {{"role", "assistant"}, {"content", ""}}}};
        json["choices"] = Json::array({ended_choice(std::move(choice), nullptr, nullptr)});
        out += as_event(json);
    }
    return out;
}

std::string ChatAnswer::piece(Written& written, const Event& event, const Part& part) {
    std::string out;
    const std::vector<ToolCall>& calls = written.reader.calls();
    const auto add = [&](Json delta, const char* finish) {
        const bool has_chances = options_.with_chances && !event.tokens.empty() && !finish;
        out += chunk(kChunk, {{"index", event.choice}, {"delta", std::move(delta)}},
                     has_chances ? chat_logprobs(event.tokens) : Json(), written, finish);
    };
    if (!part.thought.empty() || !part.text.empty() || !event.tokens.empty()) {
        Json delta = Json::object();
        if (!part.thought.empty()) delta["reasoning_content"] = part.thought;
        if (!part.text.empty() || part.thought.empty()) delta["content"] = part.text;
        add(std::move(delta), nullptr);
    }
    const std::vector<CallPiece>& pieces = written.reader.pieces();
    Json list = Json::array();
    while (written.n_pieces_shown < pieces.size())
        list.push_back(openai_piece(options_.id, event.choice, pieces[written.n_pieces_shown++]));
    if (!list.empty()) add({{"tool_calls", std::move(list)}}, nullptr);
    if (event.ended) add(Json::object(), calls.empty() ? finish_word(event.finish) : "tool_calls");
    return out;
}

std::string ChatAnswer::whole() const {
    return openai_whole("chat.completion", [&](std::size_t i, const Written& written) {
        const std::vector<ToolCall>& calls = written.reader.calls();
        Json message = {{"role", "assistant"}, {"content", written.text}, {"refusal", nullptr}};
        if (!written.thought.empty()) message["reasoning_content"] = written.thought;
        if (!calls.empty()) {
            if (written.text.empty()) message["content"] = nullptr;
            message["tool_calls"] = openai_calls(options_.id, i, calls);
        }
        return ended_choice({{"index", i}, {"message", std::move(message)}},
                            options_.with_chances ? chat_logprobs(written.tokens) : Json(),
                            calls.empty() ? finish_word(written.last.finish) : "tool_calls");
    });
}

}  // namespace

Reply endpoints::chat(Call& call, Service& service) {
    const Request request = read_chat(Fields(call.json));
    return text_reply<ChatAnswer>(call, service.find(call, request.model, Work::text), request);
}

}  // namespace fovea::serve
