// POST /api/embed and /api/embeddings: vectors of texts, and of one text in the form of older clients.
#include "serve/api/fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {
namespace {

VectorRequest read_inputs(const Fields& fields, bool is_one) {
    VectorRequest request;
    request.model = fields.text("model");
    const bool by_prompt = is_one || (!fields.find("input") && fields.find("prompt"));  // older clients' name
    const Json& input = fields.need(by_prompt ? "prompt" : "input", "a text");
    if (is_one && !input.is_string()) fields.refuse("prompt", "a text", input);
    const Json list = input.is_array() ? input : Json::array({input});
    if (list.size() > kMostTexts) fields.refuse("input", "at most 2048 texts", input);
    for (const Json& text : list) {
        if (!text.is_string()) fields.refuse("input", "a text or an array of texts", text);
        request.prompts.push_back({text.get<std::string>(), {}, false});
    }
    read_vector_options(fields, request, true);
    return request;
}

class EmbedAnswer final : public VectorAnswer {
public:
    EmbedAnswer(VectorAnswerOptions options, bool is_one) : VectorAnswer(std::move(options)), is_one_(is_one) {}
    [[nodiscard]] std::string whole() const override {
        if (is_one_) return written({{"embedding", vectors_.front()}});
        return written({{"model", options_.model}, {"embeddings", vectors_}, {"prompt_eval_count", n_tokens_}});
    }

private:
    const bool is_one_;
};

Reply embed_inputs(const Call& call, Service& service, bool is_one) {
    const Json body = read_json(call.body);
    const VectorRequest request = read_inputs(Fields(body), is_one);
    ModelEntry& entry = service.find(request.model, Work::vectors);
    if (request.prompts.empty())  // the model is to be loaded
        return reply_of({{"model", entry.served.name}, {"embeddings", Json::array()}});
    const JobPtr job = vector_job(call, entry, request);
    VectorAnswerOptions options = vector_options(call, entry, request);
    options.unit_length = !is_one && !entry.served.model.config().encoder.normalize_pooled;
    return reply_of(call, entry, job, std::make_unique<EmbedAnswer>(std::move(options), is_one), false);
}

}  // namespace

VectorRequest read_ollama_embed(const Fields& fields) { return read_inputs(fields, false); }

Reply endpoints::ollama_embed(Call& call, Service& service) { return embed_inputs(call, service, false); }
Reply endpoints::ollama_embed_one(Call& call, Service& service) { return embed_inputs(call, service, true); }

}  // namespace fovea::serve
