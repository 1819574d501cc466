// POST /api/generate: Ollama's answer to one prompt, by the model's template unless it is raw.
#include "serve/api/fields.h"
#include "serve/api/ollama_texts.h"

namespace fovea::serve {

Request read_ollama_generate(const Fields& fields) {
    Request request;
    request.model = fields.text("model");
    read_ollama_text(fields, request);
    const std::string prompt = fields.text("prompt"), system = fields.text("system");
    request.is_chat = !fields.flag("raw", false);
    request.only_loads = prompt.empty();
    for (const char* name : {"suffix", "template"}) fields.only(name, "");
    for (const char* name : {"images", "context"}) fields.only(name, Json::array());
    if (!request.is_chat) {
        request.prompts.push_back({prompt, {}, false});
        return request;
    }
    if (!system.empty()) request.messages.push_back({{"role", "system"}, {"content", system}});
    request.messages.push_back({{"role", "user"}, {"content", prompt}});
    return request;
}

namespace {

class OllamaGenerateAnswer final : public OllamaAnswer {
public:
    using OllamaAnswer::OllamaAnswer;

private:
    void add_part(Json& json, const Written&, const Part& part, std::size_t) const override {
        json["response"] = part.text;
        if (!part.thought.empty()) json["thinking"] = part.thought;
    }
};

}  // namespace

Reply endpoints::ollama_generate(Call& call, Service& service) {
    const Json body = read_json(call.body);
    const Request request = read_ollama_generate(Fields(body));
    ModelEntry& entry = service.find(request.model, Work::text);
    if (request.only_loads) return loaded(entry, "response", "");
    return text_reply<OllamaGenerateAnswer>(call, entry, request);
}

}  // namespace fovea::serve
