// POST /v1/rerank: texts in the order of their scores for a query.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "serve/api/fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {
namespace {

/// Texts are to be scored for a query.
struct RankRequest {
    std::string model, query;
    std::vector<std::string> documents;
    std::uint32_t n_best = 0;      ///< of those; 0: all
    bool shows_documents = false;  ///< in the answer, too
};

/// As Jina's, Cohere's and llama.cpp's servers have it: documents are texts, or objects with a text.
RankRequest read_rerank(const Fields& fields) {
    RankRequest request;
    request.model = fields.text("model");
    request.query = fields.text("query");
    if (request.query.empty()) throw RequestError(400, "query: expected a text, got none", "query");
    const Json& documents = fields.need("documents", "an array of texts");
    if (!documents.is_array() || documents.size() > kMostTexts)
        fields.refuse("documents", ("an array of at most " + std::to_string(kMostTexts) + " texts").c_str(), documents);
    for (const Json& document : documents) {
        const auto text = document.is_object() ? document.find("text") : document.end();
        const Json& said = document.is_object() && text != document.end() ? *text : document;
        if (!said.is_string()) fields.refuse("documents", "texts, or objects with a text", document);
        request.documents.push_back(said.get<std::string>());
    }
    if (request.documents.empty()) throw RequestError(400, "documents: expected 1 text or more, got none", "documents");
    request.n_best = static_cast<std::uint32_t>(fields.whole("top_n", 0, 1, 1 << 24));
    request.shows_documents = fields.flag("return_documents", false);
    return request;
}

class RankAnswer final : public VectorAnswer {
public:
    RankAnswer(VectorAnswerOptions options, RankRequest request, bool through_sigmoid)
        : VectorAnswer(std::move(options)), request_(std::move(request)), through_sigmoid_(through_sigmoid) {}
    [[nodiscard]] std::string whole() const override;

private:
    const RankRequest request_;
    const bool through_sigmoid_;  // the scores
};

std::string RankAnswer::whole() const {
    const auto score_of = [&](std::size_t i) {
        const double logit = vectors_[i].at(0);
        return through_sigmoid_ ? 1.0 / (1.0 + std::exp(-logit)) : logit;
    };
    std::vector<std::size_t> order(vectors_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return vectors_[a].at(0) > vectors_[b].at(0); });
    if (request_.n_best && request_.n_best < order.size()) order.resize(request_.n_best);
    Json results = Json::array();
    for (const std::size_t i : order) {
        results.push_back({{"index", i}, {"relevance_score", score_of(i)}});
        if (request_.shows_documents) results.back()["document"] = {{"text", request_.documents[i]}};
    }
    return written({{"id", options_.id},
                    {"object", "list"},
                    {"model", options_.model},
                    {"results", std::move(results)},
                    {"usage", usage()}});
}

}  // namespace

Reply endpoints::rerank(Call& call, Service& service) {
    const Json body = read_json(call.body);
    RankRequest request = read_rerank(Fields(body));
    ModelEntry& entry = service.find(request.model, Work::vectors);
    const host::Opened& served = entry.served;
    if (!served.scores_pairs())
        throw RequestError(400, "model: expected a reranker, a CrossEncoder with one label, got " + served.name,
                           "model");
    const JobPtr job = job_of(call);
    PromptReader::Prompted read = entry.prompts.read_pairs(request.query, request.documents);
    job->prompts = std::move(read.prompts);
    job->types = std::move(read.types);
    job->scores = true;
    VectorAnswerOptions options{.id = call.id, .model = served.name, .n_choices = job->n_choices()};
    return reply_of(call, entry, job,
                    std::make_unique<RankAnswer>(std::move(options), std::move(request),
                                                 find_info(served.model, "scores") == "sigmoid"),
                    false);
}

}  // namespace fovea::serve
