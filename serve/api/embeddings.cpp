// POST /v1/embeddings, and Ollama's /api/embed and /api/embeddings: vectors of texts, and of one text in the form of older clients.
#include <bit>

#include "serve/api/model_facts.h"
#include "serve/api/other_fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {

VectorRequest read_embeddings(const Fields& fields) {
    VectorRequest request;
    request.model = fields.text("model");
    request.prompts = read_prompts(fields.need("input", "a text"), "input", kMostTexts);
    request.in_base64 = fields.one_of("encoding_format", {"float", "base64"}) == "base64";
    read_vector_options(fields, request, false);
    return request;
}

namespace {

std::string base64(const std::vector<float>& values) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes, out;
    for (const float value : values) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xff);
    }
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t j = 0; j < 3; ++j)
            three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
        for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[three >> (18 - 6 * j) & 63];
    }
    return out;
}

VectorRequest read_inputs(const Fields& fields, bool is_one) {
    VectorRequest request;
    request.model = fields.text("model");
    const bool by_prompt = is_one || (!fields.find("input") && fields.find("prompt"));  // older clients' name
    request.field = by_prompt ? "prompt" : "input";
    const Json& input = fields.need(request.field, "a text");
    if (is_one && !input.is_string()) fields.refuse(request.field, "a text", input);
    const Json list = input.is_array() ? input : Json::array({input});
    if (list.size() > kMostTexts) fields.refuse(request.field, "at most 2048 texts", input);
    for (const Json& text : list) {
        if (!text.is_string()) fields.refuse(request.field, "a text or an array of texts", text);
        request.prompts.push_back({text.get<std::string>(), {}, false});
    }
    read_vector_options(fields, request, true);
    return request;
}

Reply embed_inputs(Call& call, Service& service, bool is_one) {
    const Fields fields =
        fields_of(call, {"model", "input", "prompt", "prompt_name", "dimensions", "truncate", "keep_alive", "options"});
    const VectorRequest request = read_inputs(fields, is_one);
    const bool leaves = lets_go(call.json);
    if (request.prompts.empty() && leaves)
        return reply_of({{"model", service.let_go(request.model, Work::vectors, ModelTask::embeds).name},
                         {"embeddings", Json::array()}});
    ModelEntry& entry = service.find(call, request.model, Work::vectors, ModelTask::embeds);
    const std::string name = entry.served.name;
    if (request.prompts.empty())  // the model is to be loaded
        return reply_of({{"model", name}, {"embeddings", Json::array()}});
    const bool unit_length = !is_one && !entry.served.model.config().encoder.normalize_pooled;
    Reply reply = vector_reply(call, entry, request, unit_length, [is_one, name](const Vectors& vectors) -> Json {
        if (is_one) return {{"embedding", vectors.all.front()}};
        return {{"model", name}, {"embeddings", vectors.all}, {"prompt_eval_count", vectors.n_tokens}};
    });
    if (leaves) service.let_go_later(entry);
    return reply;
}

}  // namespace

Reply endpoints::embed(Call& call, Service& service) {
    const Fields fields =
        fields_of(call, {"model", "input", "encoding_format", "prompt_name", "dimensions", "truncate", "normalize"});
    const VectorRequest request = read_embeddings(fields);
    ModelEntry& entry = service.find(call, request.model, Work::vectors, ModelTask::embeds);
    const auto word = [in_base64 = request.in_base64, name = entry.served.name](const Vectors& vectors) -> Json {
        Json list = Json::array();
        for (const std::vector<float>& vector : vectors.all)
            list.push_back({{"object", "embedding"},
                            {"index", list.size()},
                            {"embedding", in_base64 ? Json(base64(vector)) : Json(vector)}});
        return {{"object", "list"}, {"data", std::move(list)}, {"model", name}, {"usage", vectors.usage()}};
    };
    return vector_reply(call, entry, request, fields.flag("normalize", false), word);
}

VectorRequest read_ollama_embed(const Fields& fields) { return read_inputs(fields, false); }

Reply endpoints::ollama_embed(Call& call, Service& service) { return embed_inputs(call, service, false); }
Reply endpoints::ollama_embed_one(Call& call, Service& service) { return embed_inputs(call, service, true); }

}  // namespace fovea::serve
