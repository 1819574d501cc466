// POST /v1/chat/completions: OpenAI's conversations.
#include "serve/api/fields.h"
#include "serve/api/text_answer.h"

namespace fovea::serve {

Request read_chat(const Fields& fields) {
    Request request;
    request.is_chat = true;
    request.model = fields.text("model");
    request.messages = read_messages(fields.need("messages", "an array of messages"));
    read_common(fields, request);
    read_tools(fields, request);
    if (fields.flag("logprobs", false))
        request.n_likeliest = static_cast<int>(fields.whole("top_logprobs", 0, 0, kMostLikeliest));
    read_template_options(fields, request);
    read_effort(fields, "reasoning_effort", request);
    return request;
}

namespace {

constexpr const char* kChunk = "chat.completion.chunk";

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
        json["choices"] = {{{"index", i},
                            {"delta", {{"role", "assistant"}, {"content", ""}}},
                            {"logprobs", nullptr},
                            {"finish_reason", nullptr}}};
        out += as_event(json);
    }
    return out;
}

std::string ChatAnswer::piece(Written& written, const Event& event, const Part& part) {
    std::string out;
    const std::vector<ToolCall>& calls = written.calls.calls();
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
    Json json = head("chat.completion"), list = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const Written& written = choices_[i];
        const std::vector<ToolCall>& calls = written.calls.calls();
        Json message = {{"role", "assistant"}, {"content", written.text}, {"refusal", nullptr}};
        if (!written.thought.empty()) message["reasoning_content"] = written.thought;
        if (!calls.empty()) {
            if (written.text.empty()) message["content"] = nullptr;
            message["tool_calls"] = openai_calls(options_.id, i, calls, 0, false);
        }
        list.push_back({{"index", i},
                        {"message", std::move(message)},
                        {"logprobs", options_.with_chances ? chat_logprobs(written.tokens) : Json()},
                        {"finish_reason", calls.empty() ? finish_word(written.finish) : "tool_calls"}});
    }
    json["choices"] = std::move(list);
    json["usage"] = usage();
    return serve::written(json);
}

}  // namespace

Reply endpoints::chat(Call& call, Service& service) {
    const Json body = read_json(call.body);
    const Request request = read_chat(Fields(body));
    return text_reply<ChatAnswer>(call, service.find(request.model, Work::text), request);
}

}  // namespace fovea::serve
