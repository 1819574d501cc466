// POST /v1/embeddings: vectors of texts.
#include "serve/api/fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {

VectorRequest read_embeddings(const Fields& fields) {
    VectorRequest request;
    request.model = fields.text("model");
    request.prompts = read_prompts(fields.need("input", "a text"), "input", kMostTexts);
    const std::string format = fields.text("encoding_format", "float");
    if (format != "float" && format != "base64")
        throw RequestError(400, "encoding_format: expected float or base64, got " + format.substr(0, 40),
                           "encoding_format");
    request.in_base64 = format == "base64";
    read_vector_options(fields, request, false);
    return request;
}

namespace {

class EmbeddingsAnswer final : public VectorAnswer {
public:
    using VectorAnswer::VectorAnswer;
    [[nodiscard]] std::string whole() const override {
        Json list = Json::array();
        for (std::size_t i = 0; i < vectors_.size(); ++i)
            list.push_back({{"object", "embedding"},
                            {"index", i},
                            {"embedding", options_.in_base64 ? Json(base64(vectors_[i])) : Json(vectors_[i])}});
        return written({{"object", "list"}, {"data", std::move(list)}, {"model", options_.model}, {"usage", usage()}});
    }
};

}  // namespace

Reply endpoints::embed(Call& call, Service& service) {
    const Json body = read_json(call.body);
    const VectorRequest request = read_embeddings(Fields(body));
    ModelEntry& entry = service.find(request.model, Work::vectors);
    const JobPtr job = vector_job(call, entry, request);
    return reply_of(call, entry, job, std::make_unique<EmbeddingsAnswer>(vector_options(call, entry, request)), false);
}

}  // namespace fovea::serve
