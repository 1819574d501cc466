// POST /api/chat: Ollama's conversations.
#include "serve/api/fields.h"
#include "serve/api/ollama_texts.h"

namespace fovea::serve {

Request read_ollama_chat(const Fields& fields) {
    Request request;
    request.is_chat = true;
    request.model = fields.text("model");
    read_ollama_text(fields, request);
    const Json* messages = fields.find("messages");
    request.only_loads = !messages || *messages == Json::array();
    if (!request.only_loads) request.messages = read_messages(*messages);
    const Json* tools = fields.find("tools");
    if (tools && !tools->empty()) {
        check_tools(fields, *tools);
        request.tools = *tools;
    }
    return request;
}

namespace {

class OllamaChatAnswer final : public OllamaAnswer {
public:
    using OllamaAnswer::OllamaAnswer;

private:
    void add_part(Json& json, const Written& written, const Part& part, std::size_t from_call) const override {
        Json message = {{"role", "assistant"}, {"content", part.text}};
        if (!part.thought.empty()) message["thinking"] = part.thought;
        for (std::size_t i = from_call; i < written.calls.calls().size(); ++i) {
            const ToolCall& call = written.calls.calls()[i];
            message["tool_calls"].push_back({{"function", {{"name", call.name}, {"arguments", call.arguments}}}});
        }
        json["message"] = std::move(message);
    }
};

}  // namespace

Reply endpoints::ollama_chat(Call& call, Service& service) {
    const Json body = read_json(call.body);
    const Request request = read_ollama_chat(Fields(body));
    ModelEntry& entry = service.find(request.model, Work::text);
    if (request.only_loads) return loaded(entry, "message", {{"role", "assistant"}, {"content", ""}});
    return text_reply<OllamaChatAnswer>(call, entry, request);
}

}  // namespace fovea::serve
