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

Json chance(const TokenChance& token) {
    Json bytes = Json::array();
    for (const char c : token.bytes) bytes.push_back(static_cast<unsigned char>(c));
    return {{"token", token.bytes}, {"logprob", token.logprob}, {"bytes", bytes}};
}

Json chat_logprobs(const std::vector<ChosenToken>& tokens) {
    Json content = Json::array();
    for (const ChosenToken& token : tokens) {
        Json one = chance(token);
        one["top_logprobs"] = Json::array();
        for (const TokenChance& other : token.likeliest) one["top_logprobs"].push_back(chance(other));
        content.push_back(std::move(one));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json openai_calls(const std::string& id, std::size_t choice, const std::vector<ToolCall>& calls, std::size_t from,
                  bool with_index) {
    Json list = Json::array();
    for (std::size_t i = from; i < calls.size(); ++i) {
        Json call = Json::object();
        if (with_index) call["index"] = i;
        call["id"] = "call_" + id + "_" + std::to_string(choice) + "_" + std::to_string(i);
        call["type"] = "function";
        call["function"] = {{"name", calls[i].name}, {"arguments", written(calls[i].arguments)}};
        list.push_back(std::move(call));
    }
    return list;
}

class ChatAnswer final : public TextAnswer {
public:
    using TextAnswer::TextAnswer;
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
    if (calls.size() > written.n_calls_shown) {
        const Json list = openai_calls(options_.id, event.choice, calls, written.n_calls_shown, true);
        written.n_calls_shown = calls.size();
        add({{"tool_calls", list}}, nullptr);
    }
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
            message["tool_calls"] = openai_calls(options_.id, i, calls, 0, false);
        }
        return ended_choice({{"index", i}, {"message", std::move(message)}},
                            options_.with_chances ? chat_logprobs(written.tokens) : Json(),
                            calls.empty() ? finish_word(written.last.finish) : "tool_calls");
    });
}

}  // namespace

Reply endpoints::chat(Call& call, Service& service) {
    const Request request = read_chat(Fields(call.json));
    return text_reply<ChatAnswer>(call, service.find(request.model, Work::text), request);
}

}  // namespace fovea::serve
