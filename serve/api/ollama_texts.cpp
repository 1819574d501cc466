// POST /api/chat and /api/generate: Ollama's conversations, and its answer to one prompt, by the model's template unless it is raw.
#include "serve/api/text_answer.h"
#include "serve/api/text_fields.h"

namespace fovea::serve {
namespace {

/// With Ollama's own defaults, so that an answer does not change with the server.
Request read_ollama(const Fields& fields, unsigned of) {
    Request request;
    request.is_chat = request.only_loads = request.stream = true;
    request.sampler.top_k = 40;
    request.penalized.n_counted = request.penalized.n_recent;
    request.penalized.counts_prompt = true;
    const Json* options = fields.find("options");
    read_text_fields(Fields(options ? *options : Json::object(), "options"), kOllamaOptions, request);
    read_text_fields(fields, of, request);
    return request;
}

/// An object, or for a stream an object a line.
class OllamaAnswer final : public TextAnswer {
public:
    OllamaAnswer(TextAnswerOptions options, bool is_chat) : TextAnswer(std::move(options)), is_chat_(is_chat) {}
    [[nodiscard]] std::string end() override;
    [[nodiscard]] std::string whole() const override;
    [[nodiscard]] const char* stream_type() const override { return "application/x-ndjson"; }

private:
    [[nodiscard]] Json head() const;
    void add_part(Json& json, const Written& written, const Part& part, std::size_t from_call) const;
    void add_figures(Json& json, const Written& written) const;
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;

    const bool is_chat_;
};

std::string OllamaAnswer::end() {
    return failure().status ? error_body("/api/", failure().status, failure().message) + '\n' : "";
}

Json OllamaAnswer::head() const { return {{"model", options_.model}, {"created_at", utc_time(options_.created)}}; }

/// What was thought, what is said and, of a chat, calls from the given one on.
void OllamaAnswer::add_part(Json& json, const Written& written, const Part& part, std::size_t from_call) const {
    Json message = {{"role", "assistant"}};
    Json& to = is_chat_ ? message : json;
    to[is_chat_ ? "content" : "response"] = part.text;
    if (!part.thought.empty()) to["thinking"] = part.thought;
    if (!is_chat_) return;
    for (std::size_t i = from_call; i < written.reader.calls().size(); ++i) {
        const ToolCall& call = written.reader.calls()[i];
        message["tool_calls"].push_back({{"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    json["message"] = std::move(message);
}

void OllamaAnswer::add_figures(Json& json, const Written& written) const {
    const auto nanoseconds = [](Clock::duration time) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    };
    const Clock::time_point now = Clock::now(), first = written.first.value_or(now);
    json["done"] = true;
    json["done_reason"] = finish_word(written.last.finish);
    json["total_duration"] = nanoseconds(now - options_.arrived);
    json["load_duration"] = 0;
    json["prompt_eval_count"] = written.last.n_prompt;
    json["prompt_eval_duration"] = nanoseconds(first - options_.arrived);
    json["eval_count"] = written.last.n_new;
    json["eval_duration"] = nanoseconds(now - first);
}

std::string OllamaAnswer::piece(Written& written, const Event& event, const Part& part) {
    const std::size_t n_calls = written.reader.calls().size();
    const bool is_empty = part.text.empty() && part.thought.empty() && n_calls == written.n_calls_shown;
    std::string lines;
    if (!is_empty) {
        Json json = head();
        add_part(json, written, part, written.n_calls_shown);
        json["done"] = false;
        lines = serve::written(json) + '\n';
    }
    written.n_calls_shown = n_calls;
    if (!event.ended) return lines;
    Json last = head();
    add_part(last, written, {}, n_calls);  // the last object has no text: clients do not look for any
    add_figures(last, written);
    return lines + serve::written(last) + '\n';
}

std::string OllamaAnswer::whole() const {
    Json json = head();
    const Written& written = choices_.front();
    add_part(json, written, {written.text, written.thought}, 0);
    add_figures(json, written);
    return serve::written(json);
}

Reply answer(Call& call, Service& service, Request (*read)(const Fields&), bool is_chat) {
    const Request request = read(Fields(call.json));
    const bool leaves = lets_go(call.json);
    if (!request.only_loads) {
        ModelEntry& entry = service.find(call, request.model, Work::text);
        Reply reply = text_reply<OllamaAnswer>(call, entry, request, kAsManyAsFit, is_chat);
        if (leaves) service.let_go_later(entry);
        return reply;
    }
    const ModelSlot& slot = leaves ? service.let_go(request.model, Work::text)
                                   : service.slots[service.find(call, request.model, Work::text).index];
    Json json = {{"model", slot.name}, {"created_at", utc_time(unix_seconds())}};
    json[is_chat ? "message" : "response"] = is_chat ? Json{{"role", "assistant"}, {"content", ""}} : Json("");
    json["done"] = true;
    json["done_reason"] = leaves && slot.is_offered ? "unload" : "load";
    return reply_of(json);
}

}  // namespace

Request read_ollama_chat(const Fields& fields) { return read_ollama(fields, kOllamaChat); }
Request read_ollama_generate(const Fields& fields) { return read_ollama(fields, kOllamaGenerate); }

Reply endpoints::ollama_chat(Call& call, Service& service) { return answer(call, service, read_ollama_chat, true); }
Reply endpoints::ollama_generate(Call& call, Service& service) {
    return answer(call, service, read_ollama_generate, false);
}

}  // namespace fovea::serve
